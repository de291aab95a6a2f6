// SPDX-License-Identifier: Apache-2.0
//
// One simulated world: true time, what happens next, chance from a seed, and
// clocks that run a little fast or slow. Everything that happens is a function of the seed.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/ids.h"

namespace holdfast::sim {

class World {
 public:
  explicit World(uint64_t seed) : rng_(seed) {}

  absl::Duration now() const { return now_; }
  // Runs `action` after `delay`; of two at the same time the one that was asked for first.
  void After(absl::Duration delay, std::function<void()> action);
  // Does the next thing. False: nothing is left before `end`.
  bool Step(absl::Duration end);

  bool Chance(double probability) { return std::bernoulli_distribution(probability)(rng_); }
  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng_);
  }
  absl::Duration Millis(int64_t low, int64_t high) {
    return absl::Microseconds(Between(low * 1000, high * 1000));
  }

  // What happened so far as one number: the same for every run of a seed.
  void Mix(uint64_t what) { digest_ = (digest_ ^ what) * 0x9E3779B97F4A7C15 + (digest_ >> 29); }
  uint64_t digest() const { return digest_; }

  // For a failure's report: the last things that happened.
  void Note(std::string what);
  std::string Story() const;

 private:
  struct Action {
    absl::Duration at;
    uint64_t order;
    std::function<void()> run;
    bool operator<(const Action& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  std::mt19937_64 rng_;
  absl::Duration now_;
  uint64_t order_ = 0;
  uint64_t digest_ = 0;
  std::priority_queue<Action> actions_;
  std::vector<std::string> notes_;
};

// A clock that runs at `rate` times true time. The safety margin must cover it.
class DriftingClock {
 public:
  DriftingClock(const World* world, double rate, absl::Duration offset)
      : world_(world), rate_(rate), offset_(offset) {}
  BootTime Now() const { return BootTime() + (offset_ + world_->now() * rate_); }
  // How long true time takes until this clock has advanced by `delay`.
  absl::Duration TrueDelay(absl::Duration delay) const { return delay / rate_; }

 private:
  const World* world_;
  double rate_;
  absl::Duration offset_;
};

class SeededIds final : public IdSource {
 public:
  explicit SeededIds(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string NewId() override;
  std::string NewShortId() override { return NewId(); }

 private:
  std::string prefix_;
  uint64_t last_ = 0;
};

}  // namespace holdfast::sim
