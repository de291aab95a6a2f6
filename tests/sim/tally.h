// SPDX-License-Identifier: Apache-2.0
//
// Counts over all seeds, so that a simulation that does nothing cannot pass for one that finds
// nothing.
#pragma once

#include <cstdint>

namespace holdfast::sim {

struct Tally {
  int64_t steps = 0, acts = 0, grants = 0, reentries = 0, releases = 0, busy = 0, expired_waits = 0,
          long_waits = 0, losses = 0, errors = 0, retries = 0, reads = 0, permits = 0,
          mode_refusals = 0, deadlocks = 0, sets = 0, sets_refused = 0, forced = 0, kills = 0,
          stops = 0, restarts = 0, breaks = 0;
  int64_t together = 0;  // looks at which several owners held one key
  int64_t moved_on = 0;  // keys that went from a holder on one daemon to one on another
};

struct TallyRow {
  const char* what;
  int64_t Tally::*count;
};

inline constexpr TallyRow kTallyRows[] = {
    {"steps", &Tally::steps},
    {"acts of clients", &Tally::acts},
    {"grants", &Tally::grants},
    {"re-entries", &Tally::reentries},
    {"reads", &Tally::reads},
    {"permits", &Tally::permits},
    {"sets", &Tally::sets},
    {"sets refused", &Tally::sets_refused},
    {"releases", &Tally::releases},
    {"keys that moved to another daemon", &Tally::moved_on},
    {"looks at several holders of a key", &Tally::together},
    {"busy", &Tally::busy},
    {"waits that ran out", &Tally::expired_waits},
    {"waits longer than a lost wake-up costs", &Tally::long_waits},
    {"closed cycles", &Tally::deadlocks},
    {"refused for their mode", &Tally::mode_refusals},
    {"losses", &Tally::losses},
    {"taken away", &Tally::forced},
    {"errors", &Tally::errors},
    {"retries", &Tally::retries},
    {"daemons killed", &Tally::kills},
    {"daemons stopped", &Tally::stops},
    {"stores restarted empty", &Tally::restarts},
    {"connections broken", &Tally::breaks},
};

}  // namespace holdfast::sim
