// SPDX-License-Identifier: Apache-2.0
//
// The daemon's log: lines on standard error, as text or as one JSON object each.
//
//   LogWarn("the session's ttl passed", {{"session", id}, {"holds", "3"}});
//   text: 2024-05-01T10:00:00.123Z warn  the session's ttl passed session=k3… holds=3
//   json: {"time":"2024-05-01T10:00:00.123Z","level":"warn","message":"the
//   session's…","session":"k3…",…}
//
// error: an operator must act; warn: should know; info: may want to; debug: for finding faults.
// No owner and no password goes into a line: owners as OwnerFingerprint(), store URLs as
// MaskStoreUrl() gives them.
//
// Threading: everything is safe from any thread once InitLog has returned.
#pragma once

#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"

namespace holdfast::server {

enum class LogLevel { kError, kWarn, kInfo, kDebug };
enum class LogFormat { kText, kJson };

struct LogField {
  absl::string_view name;
  std::string value;
};
using LogFields = std::initializer_list<LogField>;

// Called once, before other threads exist. Takes over gRPC's own messages too.
void InitLog(LogLevel level, LogFormat format);

void LogError(absl::string_view message, LogFields fields = {});
void LogWarn(absl::string_view message, LogFields fields = {});
void LogInfo(absl::string_view message, LogFields fields = {});
void LogDebug(absl::string_view message, LogFields fields = {});

// One line without its time, as the two formats render it. For tests.
std::string RenderLine(LogFormat format, LogLevel level, absl::string_view message,
                       LogFields fields);

}  // namespace holdfast::server
