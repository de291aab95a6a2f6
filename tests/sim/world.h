// SPDX-License-Identifier: Apache-2.0
//
// One simulated world: true time, what happens next, chance from a seed, and
// clocks that run a little fast or slow. Everything that happens is a function of the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/ids.h"

namespace holdfast::sim {

// Plain numbers, because the simulation computes little else.
using Nanos = int64_t;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1000 * kMillisecond;

inline absl::Duration ToDuration(Nanos nanos) { return absl::Nanoseconds(nanos); }
inline Nanos ToNanos(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

class World {
 public:
  using Action = absl::AnyInvocable<void()>;

  // With `telling` it keeps a story of what happened, which is slow.
  explicit World(uint64_t seed, bool telling = false) : random_(seed), telling_(telling) {}

  Nanos now() const { return now_; }
  // Runs `action` after `delay`; of two at the same time the one that was asked for first.
  void After(Nanos delay, Action action);
  // Does the next thing. False: nothing is left before `end`, which it is now.
  bool Step(Nanos end);
  uint64_t steps() const { return steps_; }

  bool Chance(double probability) {
    return static_cast<double>(Random() >> 11) < probability * 9007199254740992.0;
  }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Random() % static_cast<uint64_t>(high - low + 1));
  }
  Nanos Millis(int64_t low, int64_t high) {
    return Between(low * kMillisecond, high * kMillisecond);
  }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[static_cast<size_t>(Between(0, static_cast<int64_t>(all.size()) - 1))];
  }

  // What happened so far as one number: the same for every run of a seed.
  void Mix(uint64_t what) { digest_ = (digest_ ^ what) * 0x9E3779B97F4A7C15 + (digest_ >> 29); }
  uint64_t digest() const { return digest_; }

  // For a failure's report: the last things that happened.
  template <typename... Args>
  void Note(const Args&... args) {
    if (telling_) Tell(absl::StrCat(args...));
  }
  bool telling() const { return telling_; }
  std::string Story() const;

 private:
  struct Due {
    Nanos at;
    uint64_t order;
    uint32_t slot;  // of its action
    bool operator<(const Due& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  uint64_t Random();
  void Tell(const std::string& what);

  uint64_t random_;
  const bool telling_;
  Nanos now_ = 0;
  uint64_t order_ = 0;
  uint64_t steps_ = 0;
  uint64_t digest_ = 0;
  std::vector<Due> queue_;  // a heap
  std::vector<Action> actions_;
  std::vector<uint32_t> free_slots_;
  std::vector<std::string> story_;
};

// A clock that runs at `rate` times true time. The safety margin must cover it.
class DriftingClock {
 public:
  DriftingClock(const World* world, double rate, Nanos offset)
      : world_(world), rate_(rate), offset_(offset) {}
  BootTime Now() const {
    return BootTime::FromNanos(offset_ +
                               static_cast<Nanos>(static_cast<double>(world_->now()) * rate_));
  }
  // How long true time takes until this clock has advanced by `delay`.
  Nanos TrueDelay(Nanos delay) const {
    return static_cast<Nanos>(static_cast<double>(delay) / rate_);
  }

 private:
  const World* world_;
  double rate_;
  Nanos offset_;
};

// Ids that say whose they are: `life` has 8 characters.
class SeededIds final : public IdSource {
 public:
  explicit SeededIds(std::string life) : life_(std::move(life)) {}
  std::string NewId() override { return absl::StrCat(life_, absl::Dec(++last_, absl::kZeroPad18)); }
  std::string NewShortId() override {
    return absl::StrCat(life_, absl::Dec(++last_, absl::kZeroPad7));
  }

 private:
  const std::string life_;
  uint64_t last_ = 0;
};

}  // namespace holdfast::sim
