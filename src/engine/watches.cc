// SPDX-License-Identifier: Apache-2.0
#include "src/engine/watches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "src/base/limits.h"

namespace holdfast::engine {

bool Watcher::Cares(const KeyName& name) const {
  return name.ns == ns && absl::StartsWith(name.key, prefix);
}

void Watches::Add(Watcher watcher) {
  const uint64_t channel = watcher.to.channel;
  watchers_[channel] = std::move(watcher);
}

bool Watches::Remove(uint64_t channel) {
  const bool was_there = watchers_.erase(channel) > 0;
  if (watchers_.empty()) {
    ended_.clear();
    oldest_.clear();
  }
  return was_there;
}

Watcher* Watches::Find(uint64_t channel) {
  const auto it = watchers_.find(channel);
  return it == watchers_.end() ? nullptr : &it->second;
}

std::vector<Watcher*> Watches::All() {
  std::vector<Watcher*> all;
  all.reserve(watchers_.size());
  for (auto& [channel, watcher] : watchers_) all.push_back(&watcher);
  std::sort(all.begin(), all.end(),
            [](const Watcher* a, const Watcher* b) { return a->to.channel < b->to.channel; });
  return all;
}

std::shared_ptr<const KeyNews> Watches::Judge(std::shared_ptr<const KeyNews> news) {
  if (news->kind == KeyNews::Kind::kWaiting) return news;
  const auto known = ended_.find(news->hold_id);
  const bool seen = known != ended_.end();
  if (news->kind == KeyNews::Kind::kGranted) {
    if (seen) return nullptr;
    Remember(news->hold_id, /*ended=*/false);
    return news;
  }
  if (seen && known->second) return nullptr;
  Remember(news->hold_id, /*ended=*/true);
  if (news->kind != KeyNews::Kind::kUndone) return news;
  if (!seen) return nullptr;
  auto released = std::make_shared<KeyNews>(*news);
  released->kind = KeyNews::Kind::kReleased;
  return released;
}

void Watches::Remember(const std::string& hold_id, bool ended) {
  const auto [it, is_new] = ended_.insert_or_assign(hold_id, ended);
  if (!is_new) return;
  oldest_.push_back(hold_id);
  if (oldest_.size() <= limits::kRememberedEnds) return;
  ended_.erase(oldest_.front());
  oldest_.pop_front();
}

}  // namespace holdfast::engine
