// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/clock_watch.h"

#include <algorithm>

namespace holdfast::redis {
namespace {

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kTolerance = 200 * kMilli;

}  // namespace

std::optional<absl::Duration> ClockWatch::Observe(int64_t server_ms, BootTime sent,
                                                  BootTime received) {
  // The server cuts its clock to the millisecond.
  const int64_t lowest = server_ms * kMilli - received.nanos();
  const int64_t highest = (server_ms + 1) * kMilli - sent.nanos();
  const int64_t nearest = std::clamp(offset_ns_, lowest, highest);
  const int64_t moved = nearest - offset_ns_;
  const bool first = !known_;
  known_ = true;
  offset_ns_ = nearest;
  if (first || (moved <= kTolerance && moved >= -kTolerance)) return std::nullopt;
  return absl::Nanoseconds(moved);
}

}  // namespace holdfast::redis
