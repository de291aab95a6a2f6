// SPDX-License-Identifier: Apache-2.0
//
// What the embedded store knows of one key. Plain data: lock_table.h says what
// happens to it, record_codec.h how it is written down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/store_types.h"

namespace holdfast::memory {

// One session's (or bare lease's) part in a grant.
struct HoldRecord {
  std::string owner;
  std::string hold_id;
  std::string session;  // empty: a bare lease
  uint32_t epoch = 1;
  uint32_t count = 0;
  int64_t number = 0;  // of a permit
  BootTime granted_at;
  BootTime deadline;                          // from here on the hold does not exist
  BootTime max_until = BootTime::Infinite();  // max_hold: the deadline never passes it
  BootTime min_until;                         // min_hold: what it held is kept back until then
  absl::Duration release_delay;               // and so long after an abnormal end
  std::string note;
  std::vector<std::string> ops;  // the last op ids, oldest first, at most limits::kOpsPerHold

  friend bool operator==(const HoldRecord&, const HoldRecord&) = default;
};

// One key that is held, or kept back. All its holds are of one mode. Several
// are there when several owners hold, or one took the key in several sessions.
struct KeyRecord {
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;                  // PERMIT
  int64_t token = 0;                   // EXCLUSIVE, SHARED
  BootTime kept_until;                 // EXCLUSIVE, SHARED: what ended holds ask for
  std::vector<BootTime> kept_permits;  // PERMIT: until when each that is over counts as taken
  std::vector<HoldRecord> holds;
  // Not written down, as lines are not.
  std::string reserved;   // the daemon that has until kept_until to claim the key
  BootTime writer_until;  // somebody waits to have it alone: nobody joins until then

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

}  // namespace holdfast::memory
