// SPDX-License-Identifier: Apache-2.0
//
// Time as Holdfast counts it: the time since the machine booted, sleep
// included (CLOCK_BOOTTIME). It never jumps with the wall clock, and it goes
// on while the machine is suspended, so a holder that slept sees that its
// lease is over. Everything that needs the time takes a BootTime or a Clock&;
// only clock.cc reads the machine's clocks.
#pragma once

#include <compare>
#include <cstdint>

#include "absl/time/time.h"

namespace holdfast {

// A point on the boot clock. Two of one boot can be compared and subtracted;
// those of different boots (or machines) have nothing to do with each other.
class BootTime {
 public:
  constexpr BootTime() = default;
  static constexpr BootTime FromNanos(int64_t nanos) { return BootTime(nanos); }
  // Later than every real point; stands for "never".
  static constexpr BootTime Infinite() { return BootTime(INT64_MAX); }

  constexpr int64_t nanos() const { return nanos_; }
  constexpr bool is_infinite() const { return nanos_ == INT64_MAX; }

  // Saturates at Infinite() and at 0.
  friend BootTime operator+(BootTime t, absl::Duration d);
  friend BootTime operator-(BootTime t, absl::Duration d) { return t + (-d); }
  friend absl::Duration operator-(BootTime a, BootTime b);
  friend constexpr auto operator<=>(BootTime a, BootTime b) = default;

 private:
  constexpr explicit BootTime(int64_t nanos) : nanos_(nanos) {}
  int64_t nanos_ = 0;
};

// Where the time comes from. Implementations are safe to call from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual BootTime Now() const = 0;
};

// The machine's boot clock.
class MachineClock final : public Clock {
 public:
  BootTime Now() const override;
};

// The time of day, which people and NTP set as they like: only for numbers that shall grow over
// restarts (fencing tokens) and for showing to people, never for a deadline. Safe to call from any
// thread.
class WallClock {
 public:
  virtual ~WallClock() = default;
  // Milliseconds since 1970, UTC.
  virtual int64_t UnixMillis() const = 0;
};

// The machine's time of day.
class MachineWallClock final : public WallClock {
 public:
  int64_t UnixMillis() const override;
};

}  // namespace holdfast
