// SPDX-License-Identifier: Apache-2.0
#include "src/base/clock.h"

#include <time.h>

namespace holdfast {

BootTime operator+(BootTime t, absl::Duration d) {
  if (t.is_infinite()) return t;
  const int64_t delta = absl::ToInt64Nanoseconds(d);
  int64_t sum = 0;
  if (__builtin_add_overflow(t.nanos(), delta, &sum)) {
    return delta > 0 ? BootTime::Infinite() : BootTime();
  }
  return BootTime::FromNanos(sum < 0 ? 0 : sum);
}

absl::Duration operator-(BootTime a, BootTime b) {
  if (a.is_infinite()) return b.is_infinite() ? absl::ZeroDuration() : absl::InfiniteDuration();
  if (b.is_infinite()) return -absl::InfiniteDuration();
  return absl::Nanoseconds(a.nanos() - b.nanos());
}

BootTime MachineClock::Now() const {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return BootTime::FromNanos(int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec);
}

int64_t MachineWallClock::UnixMillis() const {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return int64_t{ts.tv_sec} * 1000 + ts.tv_nsec / 1'000'000;
}

}  // namespace holdfast
