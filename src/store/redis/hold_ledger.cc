// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/hold_ledger.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "src/base/limits.h"

namespace holdfast::redis {
namespace {

// So long after its end a hold is looked for.
constexpr absl::Duration kAfterEnd = absl::Milliseconds(100);
// News travels on another connection than the answer to a look.
constexpr absl::Duration kNewsDelay = absl::Milliseconds(500);
// A look that is not answered is repeated.
constexpr absl::Duration kLookAgain = absl::Seconds(2);

KeyNews LossOf(KeyNews news) {
  news.kind = KeyNews::Kind::kLost;
  news.reason = LossReason::kLeaseExpired;
  return news;
}

KeyNews LossOf(const KeyName& name, const HolderState& holder, int64_t token) {
  KeyNews news;
  news.kind = KeyNews::Kind::kLost;
  news.name = name;
  news.owner = holder.owner;
  news.hold_id = holder.hold_id;
  news.session = holder.session;
  news.mode = holder.mode;
  news.token = holder.token != 0 ? holder.token : token;
  news.note = holder.note;
  return news;
}

}  // namespace

std::vector<KeyNews> HoldLedger::Hear(const HeardNews& heard, BootTime now) {
  std::vector<KeyNews> lost;
  const KeyNews& news = heard.news;
  if (news.kind == KeyNews::Kind::kWaiting) return lost;
  if (news.kind != KeyNews::Kind::kGranted) {
    Forget(news.hold_id);
    return lost;
  }
  if (heard.key_was_free) {
    if (const auto it = of_key_.find(news.name); it != of_key_.end()) {
      const std::vector<std::string> ended = it->second;
      for (const std::string& id : ended) {
        if (id == news.hold_id) continue;
        lost.push_back(holds_.at(id).lost);
        Forget(id);
      }
    }
  }
  Add(LossOf(news), now + news.lease + kAfterEnd);
  return lost;
}

void HoldLedger::See(const KeyReport& report, BootTime now) {
  absl::flat_hash_map<absl::string_view, const HolderState*> there;
  for (const HolderState& holder : report.holders) {
    if (!holder.foreign) there[holder.hold_id] = &holder;
  }
  if (const auto it = of_key_.find(report.name); it != of_key_.end()) {
    const bool all_seen = report.holds <= report.holders.size();
    for (const std::string& id : it->second) {
      Entry& entry = holds_.at(id);
      if (there.contains(id) || entry.gone || !all_seen) continue;
      entry.gone = true;
      Move(id, entry, now + kNewsDelay);
    }
  }
  for (const auto& [id, holder] : there) {
    Add(LossOf(report.name, *holder, report.token), now + holder->expires_in + kAfterEnd);
  }
}

HoldLedger::Due HoldLedger::TakeDue(BootTime now, size_t max) {
  Due due;
  while (NextDue() <= now && due.look_at.size() < max && due.lost.size() < max) {
    const std::string id = due_.begin()->second;
    Entry& entry = holds_.at(id);
    if (entry.gone) {
      due.lost.push_back(std::move(entry.lost));
      entry.lost.name = due.lost.back().name;
      Forget(id);
      continue;
    }
    if (due.look_at.empty() || due.look_at.back() != entry.lost.name) {
      due.look_at.push_back(entry.lost.name);
    }
    Move(id, entry, now + kLookAgain);
  }
  return due;
}

bool HoldLedger::full() const { return holds_.size() >= limits::kTrackedHolds; }

void HoldLedger::Clear() {
  holds_.clear();
  of_key_.clear();
  due_.clear();
}

void HoldLedger::Add(KeyNews lost, BootTime due) {
  if (const auto it = holds_.find(lost.hold_id); it != holds_.end()) {
    it->second.gone = false;
    return Move(it->first, it->second, due);
  }
  if (full()) return;
  of_key_[lost.name].push_back(lost.hold_id);
  due_.insert({due, lost.hold_id});
  std::string id = lost.hold_id;
  holds_[std::move(id)] = Entry{.lost = std::move(lost), .due = due};
}

void HoldLedger::Move(const std::string& hold_id, Entry& entry, BootTime due) {
  due_.erase({entry.due, hold_id});
  entry.due = due;
  due_.insert({due, hold_id});
}

void HoldLedger::Forget(const std::string& hold_id) {
  const auto it = holds_.find(hold_id);
  if (it == holds_.end()) return;
  const auto key = of_key_.find(it->second.lost.name);
  std::erase(key->second, hold_id);
  if (key->second.empty()) of_key_.erase(key);
  due_.erase({it->second.due, hold_id});
  holds_.erase(it);
}

}  // namespace holdfast::redis
