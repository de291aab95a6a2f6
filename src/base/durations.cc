// SPDX-License-Identifier: Apache-2.0
#include "src/base/durations.h"

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast {

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text, absl::string_view field) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration == absl::InfiniteDuration()) {
    return Fail(
        Reason::kInvalidField, field,
        absl::StrCat(field, " must be a duration such as 250ms, 5s, 3m or 1h, not '", text, "'"));
  }
  return duration;
}

std::string DurationText(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "never";
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

}  // namespace holdfast
