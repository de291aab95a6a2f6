// SPDX-License-Identifier: Apache-2.0
//
// The engine's timers: a heap of "look at this record at that time". Entries
// are never removed; whoever is looked at too early (its time has moved) is
// simply queued again. So moving a limit costs nothing, which is what happens
// to most limits.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "src/base/clock.h"

namespace holdfast::engine {

enum class TimerKind { kSession, kHold, kWaiter, kLine, kDrain, kSet };

struct Timer {
  BootTime at;
  TimerKind kind = TimerKind::kSession;
  uint64_t id = 0;
};

class TimerQueue {
 public:
  void Add(Timer timer) {
    if (!timer.at.is_infinite()) heap_.push(timer);
  }
  // The earliest timer that is due, taken off the queue.
  std::optional<Timer> TakeDue(BootTime now) {
    if (heap_.empty() || heap_.top().at > now) return std::nullopt;
    Timer timer = heap_.top();
    heap_.pop();
    return timer;
  }
  BootTime Next() const { return heap_.empty() ? BootTime::Infinite() : heap_.top().at; }
  size_t size() const { return heap_.size(); }

 private:
  struct Later {
    bool operator()(const Timer& a, const Timer& b) const { return a.at > b.at; }
  };
  std::priority_queue<Timer, std::vector<Timer>, Later> heap_;
};

}  // namespace holdfast::engine
