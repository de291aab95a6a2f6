// SPDX-License-Identifier: Apache-2.0
#include "src/base/status.h"

#include <array>
#include <cstdint>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

constexpr absl::string_view kReasonUrl = "holdfast/reason";
constexpr absl::string_view kFieldUrl = "holdfast/field";
constexpr absl::string_view kRetryUrl = "holdfast/retry-after-ns";

struct ReasonInfo {
  absl::string_view name;
  absl::StatusCode code;
};

constexpr std::array<ReasonInfo, 23> kReasons = {{
    {"UNSPECIFIED", absl::StatusCode::kUnknown},
    {"INVALID_FIELD", absl::StatusCode::kInvalidArgument},
    {"NOT_OWNER", absl::StatusCode::kFailedPrecondition},
    {"LEASE_EXPIRED", absl::StatusCode::kFailedPrecondition},
    {"REENTRY_REFUSED", absl::StatusCode::kFailedPrecondition},
    {"WRONG_TYPE", absl::StatusCode::kFailedPrecondition},
    {"SESSION_NOT_FOUND", absl::StatusCode::kNotFound},
    {"STORE_UNREACHABLE", absl::StatusCode::kUnavailable},
    {"GRACE_PERIOD", absl::StatusCode::kUnavailable},
    {"DRAINING", absl::StatusCode::kUnavailable},
    {"STORE_OUT_OF_MEMORY", absl::StatusCode::kResourceExhausted},
    {"LIMIT_REACHED", absl::StatusCode::kResourceExhausted},
    {"COMMAND_FORGOTTEN", absl::StatusCode::kFailedPrecondition},
    {"CANCELLED", absl::StatusCode::kCancelled},
    {"UNSUPPORTED", absl::StatusCode::kUnimplemented},
    {"SESSION_EXPIRED", absl::StatusCode::kAborted},
    {"STORE_ERROR", absl::StatusCode::kInternal},
    {"SLOW_READER", absl::StatusCode::kAborted},
    {"COMMAND_MISMATCH", absl::StatusCode::kInvalidArgument},
    {"SESSION_CLOSED", absl::StatusCode::kAborted},
    {"UPGRADE_REFUSED", absl::StatusCode::kFailedPrecondition},
    {"LIMIT_MISMATCH", absl::StatusCode::kFailedPrecondition},
    {"MODE_MISMATCH", absl::StatusCode::kFailedPrecondition},
}};
static_assert(kReasons.size() == static_cast<size_t>(Reason::kLast) + 1);

const ReasonInfo& InfoOf(Reason reason) { return kReasons.at(static_cast<size_t>(reason)); }

std::optional<int64_t> NumberIn(const absl::Status& status, absl::string_view url) {
  const auto payload = status.GetPayload(url);
  int64_t number = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &number)) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

absl::StatusCode CodeOf(Reason reason) { return InfoOf(reason).code; }

absl::string_view ReasonName(Reason reason) { return InfoOf(reason).name; }

absl::Status Fail(Reason reason, absl::string_view field, absl::string_view message) {
  absl::Status status(CodeOf(reason), message);
  status.SetPayload(kReasonUrl, absl::Cord(absl::StrCat(static_cast<int>(reason))));
  if (!field.empty()) status.SetPayload(kFieldUrl, absl::Cord(field));
  return status;
}

absl::Status FailRetryable(Reason reason, absl::string_view message, absl::Duration retry_after) {
  absl::Status status = Fail(reason, "", message);
  status.SetPayload(kRetryUrl, absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(retry_after))));
  return status;
}

Reason ReasonOf(const absl::Status& status) {
  return static_cast<Reason>(NumberIn(status, kReasonUrl).value_or(0));
}

std::string FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

std::optional<absl::Duration> RetryAfterOf(const absl::Status& status) {
  const std::optional<int64_t> nanos = NumberIn(status, kRetryUrl);
  if (!nanos.has_value()) return std::nullopt;
  return absl::Nanoseconds(*nanos);
}

}  // namespace holdfast
