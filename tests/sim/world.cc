// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast::sim {
namespace {

constexpr size_t kNotesKept = 120;

}  // namespace

void World::After(absl::Duration delay, std::function<void()> action) {
  actions_.push(Action{now_ + std::max(delay, absl::ZeroDuration()), ++order_, std::move(action)});
}

bool World::Step(absl::Duration end) {
  if (actions_.empty() || actions_.top().at > end) return false;
  // The queue's top is const; the action is not needed there any more.
  Action next = std::move(const_cast<Action&>(actions_.top()));
  actions_.pop();
  now_ = next.at;
  Mix(static_cast<uint64_t>(absl::ToInt64Nanoseconds(now_)));
  Mix(next.order);
  next.run();
  return true;
}

void World::Note(std::string what) {
  if (notes_.size() == kNotesKept) notes_.erase(notes_.begin());
  notes_.push_back(absl::StrFormat("%10.4f  %s", absl::ToDoubleSeconds(now_), what));
}

std::string World::Story() const {
  std::string story;
  for (const std::string& note : notes_) absl::StrAppend(&story, note, "\n");
  return story;
}

std::string SeededIds::NewId() { return absl::StrFormat("%s-%020d", prefix_, ++last_); }

}  // namespace holdfast::sim
