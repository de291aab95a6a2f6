// SPDX-License-Identifier: Apache-2.0
//
// Expected failures are absl::Status values that carry, beside code and
// message, what a program needs: a reason, the field or limit concerned, and
// when to try again. Numbers of Reason are those of ErrorReason in
// proto/holdfast/v1/types.proto (asserted where the two meet, in server/).
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace holdfast {

enum class Reason {
  kUnspecified = 0,
  kInvalidField = 1,
  kNotOwner = 2,
  kLeaseExpired = 3,
  kReentryRefused = 4,
  kWrongType = 5,
  kSessionNotFound = 6,
  kStoreUnreachable = 7,
  kGracePeriod = 8,
  kDraining = 9,
  kStoreOutOfMemory = 10,
  kLimitReached = 11,
  kCommandForgotten = 12,
  kCancelled = 13,
  kUnsupported = 14,
  kSessionExpired = 15,
  kStoreError = 16,
  kSlowReader = 17,
  kCommandMismatch = 18,
  kSessionClosed = 19,
  kUpgradeRefused = 20,
  kLimitMismatch = 21,
  kModeMismatch = 22,
  kLast = kModeMismatch,
};

// The status code that goes with a reason; each reason has exactly one.
absl::StatusCode CodeOf(Reason reason);

// "NOT_OWNER", ...: the name a program sees.
absl::string_view ReasonName(Reason reason);

// A failure with CodeOf(reason). `field` may be empty.
absl::Status Fail(Reason reason, absl::string_view field, absl::string_view message);

// The same with a hint when to try again.
absl::Status FailRetryable(Reason reason, absl::string_view message, absl::Duration retry_after);

// What Fail attached; kUnspecified, "", nullopt where the status came from elsewhere.
Reason ReasonOf(const absl::Status& status);
std::string FieldOf(const absl::Status& status);
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace holdfast
