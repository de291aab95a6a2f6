// SPDX-License-Identifier: Apache-2.0
//
// Durations as people write them: 250ms, 5s, 3m, 1h, also 1m30s. A bare 0 is allowed;
// any other number without a unit is not.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace holdfast {

// INVALID_ARGUMENT naming `field` where `text` is no duration or negative.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text, absl::string_view field);

// "250ms", "5s", "1m30s": what ParseDuration reads, to the millisecond ("0" for zero; "never" for
// infinite).
std::string DurationText(absl::Duration duration);

}  // namespace holdfast
