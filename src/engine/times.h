// SPDX-License-Identifier: Apache-2.0
//
// The durations of an answer, for the caller who gets it.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/engine/acquire_all.h"
#include "src/engine/records.h"

namespace holdfast::engine {

// `answer` (a Grant or RenewAnswer) has durations that count from `sent`, when
// the successful attempt went to the store. What the caller gets counts from
// `waited` after its own request was received; a retry that came only after the
// attempt gets less lease instead. The caller adds `waited` to a time of its own
// clock, so it is told so much less as the two may have drifted apart meanwhile.
template <typename T>
T AnswerFor(const Caller& caller, T answer, BootTime sent) {
  const absl::Duration waited = sent - caller.received;
  answer.waited = std::max(waited, absl::ZeroDuration());
  const absl::Duration late = answer.waited - waited;
  answer.lease = std::max(answer.lease - late, absl::ZeroDuration());
  if (answer.max_hold_remaining.has_value()) {
    answer.max_hold_remaining = std::max(*answer.max_hold_remaining - late, absl::ZeroDuration());
  }
  // A set counts with this engine's own clock, and tells its callers.
  if (caller.to.channel != kSetChannel) answer.waited -= ClockDrift(answer.waited);
  return answer;
}

}  // namespace holdfast::engine
