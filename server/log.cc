// SPDX-License-Identifier: Apache-2.0
#include "server/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace holdfast::server {
namespace {

// What would break a line or a terminal; an apostrophe does neither.
std::string EscapeLine(absl::string_view text) {
  return absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\'", "'"}});
}

std::atomic<LogFormat> g_format{LogFormat::kText};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kDebug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "info";
}

std::string JsonString(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TextValue(absl::string_view value) {
  const bool plain =
      !value.empty() && value.find_first_of(" \"=\n\r\t\\") == absl::string_view::npos;
  return plain ? std::string(value) : absl::StrCat("\"", EscapeLine(value), "\"");
}

void Write(LogLevel level, absl::string_view message, LogFields fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (!logger->should_log(SpdlogLevel(level))) return;
  const std::string line =
      RenderLine(g_format.load(std::memory_order_relaxed), level, message, fields);
  logger->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

// gRPC reports what its callers learn as statuses anyway: its lines are for finding faults.
void OnGrpcLog(gpr_log_func_args* args) {
  const char* file = std::strrchr(args->file, '/');
  LogDebug(args->message, {{"from", "grpc"}, {"file", file == nullptr ? args->file : file + 1}});
}

// A request that cannot be parsed is its client's affair, who is told.
void OnProtobufLog(google::protobuf::LogLevel, const char* file, int, const std::string& message) {
  LogDebug(message, {{"from", "protobuf"}, {"file", file}});
}

}  // namespace

void InitLog(LogLevel level, LogFormat format) {
  g_format.store(format, std::memory_order_relaxed);
  auto logger = std::make_shared<spdlog::logger>("holdfastd",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const char* pattern = format == LogFormat::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})"
                                                   : "%Y-%m-%dT%H:%M:%S.%eZ %v";
  logger->set_pattern(pattern, spdlog::pattern_time_type::utc);
  logger->set_level(SpdlogLevel(level));
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(OnGrpcLog);
  google::protobuf::SetLogHandler(OnProtobufLog);
}

void LogError(absl::string_view message, LogFields fields) {
  Write(LogLevel::kError, message, fields);
}
void LogWarn(absl::string_view message, LogFields fields) {
  Write(LogLevel::kWarn, message, fields);
}
void LogInfo(absl::string_view message, LogFields fields) {
  Write(LogLevel::kInfo, message, fields);
}
void LogDebug(absl::string_view message, LogFields fields) {
  Write(LogLevel::kDebug, message, fields);
}

std::string RenderLine(LogFormat format, LogLevel level, absl::string_view message,
                       LogFields fields) {
  std::string line;
  if (format == LogFormat::kJson) {
    line = absl::StrCat("\"level\":\"", LevelName(level), "\",\"message\":", JsonString(message));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",", JsonString(field.name), ":", JsonString(field.value));
    }
    return line;
  }
  // A message may quote what a client or a store said: keep it on its line.
  line = absl::StrCat(LevelName(level),
                      level == LogLevel::kWarn || level == LogLevel::kInfo ? "  " : " ",
                      EscapeLine(message));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
  }
  return line;
}

}  // namespace holdfast::server
