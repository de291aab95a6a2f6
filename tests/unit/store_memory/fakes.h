// SPDX-License-Identifier: Apache-2.0
//
// Clocks that a test moves, and short ways to write requests.
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/base/store_types.h"

namespace holdfast::memory {

class FakeClock final : public Clock {
 public:
  BootTime Now() const override { return now; }
  BootTime now = BootTime::FromNanos(1'000'000'000);
};

class FakeWallClock final : public WallClock {
 public:
  int64_t UnixMillis() const override { return millis; }
  int64_t millis = limits::kTokenEpochUnixMillis + 1000;
};

inline HoldRef Ref(const std::string& owner, const std::string& hold_id = "hold",
                   const std::string& key = "key", const std::string& session = "") {
  return {.name = {"default", key}, .owner = owner, .hold_id = hold_id, .session = session};
}

inline AcquireOp Take(HoldRef hold, absl::Duration lease = absl::Seconds(30)) {
  AcquireOp op;
  op.hold = std::move(hold);
  op.lease = lease;
  return op;
}

inline ReleaseOp Give(HoldRef hold, ReleaseKind kind = ReleaseKind::kOne, std::string op_id = "") {
  return {.hold = std::move(hold), .kind = kind, .op_id = std::move(op_id)};
}

}  // namespace holdfast::memory
