// SPDX-License-Identifier: Apache-2.0
//
// What stores tell those who watch keys.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "src/base/names.h"

namespace holdfast {

enum class Mode { kExclusive = 1, kShared = 2, kPermit = 3 };

// Why a hold ended without its owner releasing it. Numbers are those of LossReason in
// proto/holdfast/v1/types.proto, and stores write them down.
enum class LossReason {
  kLeaseExpired = 1,
  kMaxHold = 2,
  kForced = 3,
  kStoreLostIt = 4,
  kTakenOver = 5,
  kFeedMissed = 6,
  kSessionClosed = 7,
  kDrained = 8,
};

// One thing that happened to a key. A hold is told once when it begins and once when it ends: not
// when its owner takes the key once more under it, or gives one count of several back.
struct KeyNews {
  enum class Kind {
    kGranted = 1,
    kReleased = 2,
    kLost = 3,
    kUndone = 4,   // the grant was taken back, as if it had never been
    kWaiting = 5,  // a request began to wait
  };
  Kind kind = Kind::kGranted;
  KeyName name;
  std::string owner;
  std::string hold_id;  // empty: kWaiting
  std::string session;  // empty: a bare lease
  Mode mode = Mode::kExclusive;
  int64_t token = 0;  // kWaiting: 0
  std::string note;
  LossReason reason = LossReason::kLeaseExpired;  // kLost
  absl::Duration lease;                           // kGranted: what remains of it
  uint32_t queue_length = 0;  // kWaiting: how many wait at the request's daemon, it included
};

}  // namespace holdfast
