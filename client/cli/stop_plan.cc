// SPDX-License-Identifier: Apache-2.0
#include "client/cli/stop_plan.h"

#include <algorithm>

namespace holdfast::cli {
namespace {

constexpr absl::Duration kLongestSpan = absl::Seconds(5);
constexpr absl::Duration kLongestKillMargin = absl::Milliseconds(250);

// What the kernel may take from KILL to the end of the last process.
absl::Duration KillMargin(absl::Duration span) { return std::min(span / 5, kLongestKillMargin); }

}  // namespace

absl::Duration StopSpan(absl::Duration lease, absl::Duration ttl) {
  absl::Duration span = std::min(lease / 4, kLongestSpan);
  if (ttl > absl::ZeroDuration()) span = std::min(span, ttl / 4);
  return span;
}

StopTimes PlanStop(BootTime valid_until, absl::Duration span) {
  return {.term_at = valid_until - span, .kill_at = valid_until - KillMargin(span)};
}

StopTimes PlanStopNow(BootTime now, BootTime valid_until, absl::Duration span) {
  const BootTime last = valid_until - KillMargin(span);
  return {.term_at = now, .kill_at = std::max(now, std::min(now + span, last))};
}

}  // namespace holdfast::cli
