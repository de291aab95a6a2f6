// SPDX-License-Identifier: Apache-2.0
#include "client/lib/convert.h"

#include <string>

#include "src/base/status.h"

namespace holdfast::client {
namespace {

constexpr char kErrorMetadata[] = "holdfast-error-bin";

}  // namespace

google::protobuf::Duration ToMessage(absl::Duration duration) {
  google::protobuf::Duration message;
  absl::Duration rest;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return message;
}

absl::Duration FromMessage(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

GrantTimes TimesOf(const v1::Grant& grant) {
  GrantTimes times{.waited = FromMessage(grant.waited()),
                   .lease = FromMessage(grant.lease()),
                   .max_hold_remaining = std::nullopt,
                   .safety_margin = FromMessage(grant.safety_margin())};
  if (grant.has_max_hold_remaining()) {
    times.max_hold_remaining = FromMessage(grant.max_hold_remaining());
  }
  return times;
}

absl::Status StatusOf(const v1::Error& error) {
  const auto code = static_cast<absl::StatusCode>(error.code());
  const bool known = error.reason() > v1::ERROR_REASON_UNSPECIFIED &&
                     error.reason() <= static_cast<int>(Reason::kLast);
  if (!known) return absl::Status(code, error.message());
  const auto reason = static_cast<Reason>(error.reason());
  if (error.has_retry_after()) {
    return FailRetryable(reason, error.message(), FromMessage(error.retry_after()));
  }
  return Fail(reason, error.field(), error.message());
}

absl::Status StatusOf(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto it = metadata.find(kErrorMetadata);
  v1::Error error;
  if (it != metadata.end() &&
      error.ParseFromString(std::string(it->second.data(), it->second.size()))) {
    return StatusOf(error);
  }
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

bool IsUnreachable(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) &&
         ReasonOf(status) == Reason::kUnspecified;
}

}  // namespace holdfast::client
