// SPDX-License-Identifier: Apache-2.0
//
// When a command must be told to stop, and when it must be dead, so that
// nothing of it runs when somebody else may have the lock. Pure arithmetic.
#pragma once

#include "absl/time/time.h"
#include "src/base/clock.h"

namespace holdfast::cli {

struct StopTimes {
  BootTime term_at;
  BootTime kill_at;  // before the validity ends
};

// How long a command has between TERM and KILL: a quarter of the lease or of
// the session's ttl (0: none counts), whichever is shorter; at most 5 s.
absl::Duration StopSpan(absl::Duration lease, absl::Duration ttl);

// The last moments of a hold that nobody has declared lost yet.
StopTimes PlanStop(BootTime valid_until, absl::Duration span);

// Of a hold that was declared lost at `now`: TERM at once, KILL after the span
// or before the validity ends.
StopTimes PlanStopNow(BootTime now, BootTime valid_until, absl::Duration span);

}  // namespace holdfast::cli
