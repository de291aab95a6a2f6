// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace holdfast::sim {
namespace {

constexpr size_t kToldLast = 2000;

}  // namespace

// Steele, Lea and Flood's SplitMix64: the same on every machine and library.
uint64_t World::Random() {
  uint64_t z = (random_ += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

void World::After(Nanos delay, Action action) {
  uint32_t slot = static_cast<uint32_t>(actions_.size());
  if (free_slots_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    actions_[slot] = std::move(action);
  }
  queue_.push_back(Due{now_ + std::max<Nanos>(delay, 0), ++order_, slot});
  std::push_heap(queue_.begin(), queue_.end());
}

bool World::Step(Nanos end) {
  if (queue_.empty() || queue_.front().at > end) {
    now_ = std::max(now_, end);
    return false;
  }
  std::pop_heap(queue_.begin(), queue_.end());
  const Due due = queue_.back();
  queue_.pop_back();
  Action action = std::move(actions_[due.slot]);
  free_slots_.push_back(due.slot);
  now_ = due.at;
  ++steps_;
  Mix(static_cast<uint64_t>(due.at));
  Mix(due.order);
  action();
  return true;
}

void World::Tell(const std::string& what) {
  if (story_.size() == kToldLast) story_.erase(story_.begin());
  story_.push_back(absl::StrFormat("%10.4f  %s",
                                   static_cast<double>(now_) / static_cast<double>(kSecond), what));
}

std::string World::Story() const {
  std::string story;
  for (const std::string& line : story_) absl::StrAppend(&story, line, "\n");
  return story;
}

}  // namespace holdfast::sim
