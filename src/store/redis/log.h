// SPDX-License-Identifier: Apache-2.0
//
// How the Redis store speaks to the daemon's log.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"

namespace holdfast::redis {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

using LogFunction = std::function<void(LogLevel, absl::string_view)>;

}  // namespace holdfast::redis
