// SPDX-License-Identifier: Apache-2.0
//
// Notices jumps of the server's wall clock, by which Redis expires keys,
// against this machine's boot clock. A forward jump ends leases early, a
// backward one lets the dead hold on.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "src/base/clock.h"

namespace holdfast::redis {

class ClockWatch {
 public:
  // The server read `server_ms` (its wall clock, ms since 1970) at some time between `sent` and
  // `received`. Answers by how much its clock has jumped since the answers before, if by more than
  // 200 ms beyond what the round trip leaves open; slow drift is followed in silence.
  std::optional<absl::Duration> Observe(int64_t server_ms, BootTime sent, BootTime received);

  // Another server answers from now on.
  void Reset() { known_ = false; }

 private:
  bool known_ = false;
  int64_t offset_ns_ = 0;  // server clock - boot clock
};

}  // namespace holdfast::redis
