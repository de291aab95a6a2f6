// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/lock_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "src/base/limits.h"
#include "src/store/memory/record_rules.h"

namespace holdfast::memory {

using Result = decltype(StoreReply::result);

namespace {

Result NoAnswer() { return Failure(StoreFailureKind::kOther, "this has no answer"); }

KeyNews::Kind EndOfRelease(ReleaseKind kind) {
  if (kind == ReleaseKind::kUndo) return KeyNews::Kind::kUndone;
  return kind == ReleaseKind::kAll ? KeyNews::Kind::kLost : KeyNews::Kind::kReleased;
}

}  // namespace

LockTable::LockTable(TokenSource* tokens, TableObserver* observer)
    : tokens_(tokens), observer_(observer) {}

StoreReply LockTable::Apply(const StoreRequest& request, BootTime now, bool followed) {
  followed_ = followed;
  StoreReply reply;
  reply.id = request.id;
  reply.result = std::visit([&](const auto& op) { return Do(op, now); }, request.op);
  return reply;
}

Result LockTable::Do(const AcquireOp& op, BootTime now) {
  if (!op.place.daemon.empty()) lines_.Beat(op.place.daemon, now);
  Result result = Attempt(op, now);
  if (auto* granted = std::get_if<Granted>(&result)) {
    if (!granted->replayed) LeaveLine(op, *granted, now);
  } else if (std::holds_alternative<Busy>(result) || std::holds_alternative<InGrace>(result)) {
    StandInLine(op, now);
  }
  return result;
}

void LockTable::LeaveLine(const AcquireOp& op, Granted& granted, BootTime now) {
  const KeyName& name = op.hold.name;
  if (op.leaves) lines_.Leave(name, op.place);
  if (op.leaves && op.stays) lines_.Enter(name, op.place);
  if (op.place.number > 0) lines_.Served(name, op.place);
  const Place* const first = lines_.First(name, now);
  granted.others_first = first != nullptr && first->daemon != op.place.daemon;
  // Those who can join are not first in line, perhaps, and of another daemon.
  if (granted.more_fit && granted.others_first) freed_.push_back({name, ""});
}

// `will_wait` and `others_wait` need no mark for a release here: each is told to whoever
// subscribed.
void LockTable::StandInLine(const AcquireOp& op, BootTime now) {
  if (op.enters) lines_.Enter(op.hold.name, op.place);
  const auto it = entries_.find(op.hold.name);
  const bool writer = op.mode == Mode::kExclusive && op.will_wait && !op.only_reentry;
  if (writer && it != entries_.end())
    it->second.record.writer_until = now + limits::kWriterPatience;
}

Result LockTable::Attempt(const AcquireOp& op, BootTime now) {
  const HoldRef& ref = op.hold;
  KeyRecord* record = Settle(ref.name, now);
  HoldRecord* const mine = FindHold(record, ref, /*any_id=*/true);
  if (mine != nullptr && Remembers(*mine, op.op_id)) return GrantOf(*record, *mine, now, true);
  if (op.replay_only) return GoneFrom(record, ref.owner);

  if (CountOf(record, ref.owner) > 0) return TakeAgain(op, *record, mine, now);
  if (op.only_reentry && !IsHeld(record)) return Busy{};
  if (!IsHeld(record)) {
    if (auto result = MindLine(op, record, now)) return *result;
  }
  if (record != nullptr) {
    const bool permits = record->mode == Mode::kPermit && op.mode == Mode::kPermit;
    if (permits && record->limit != op.limit) return ModeRefused{Mode::kPermit, record->limit};
    const bool room = HasRoom(*record, op.mode) && record->writer_until <= now;
    if (op.only_reentry || !room) return BusyOf(*record, op.mode, now);
  }
  if (now < grace_until_) return InGrace{.remaining = grace_until_ - now};
  return TakeNew(op, now);
}

std::optional<Result> LockTable::MindLine(const AcquireOp& op, KeyRecord*& record, BootTime now) {
  if (now < grace_until_) return std::nullopt;
  const KeyName& name = op.hold.name;
  const bool kept_for_it =
      record != nullptr && !op.place.daemon.empty() && record->reserved == op.place.daemon;
  if (kept_for_it) {
    EndReservation(name, now);
    record = nullptr;
  } else if (record == nullptr && op.place.number > 0) {
    const Place* const first = lines_.First(name, now);
    if (first == nullptr || first->daemon == op.place.daemon) return std::nullopt;
    return Busy{.holders = {}, .free_in = limits::kClaimTime, .handed_to = HandOn(name, now)};
  }
  return std::nullopt;
}

Result LockTable::TakeAgain(const AcquireOp& op, KeyRecord& record, HoldRecord* mine,
                            BootTime now) {
  const KeyName& name = op.hold.name;
  if (op.refuse_reentry) return ReentryRefused{};
  if (!Agrees(record, op.mode, op.limit)) return ModeRefused{record.mode, record.limit};
  if (CountOf(&record, op.hold.owner) >= limits::kMaxHoldCount) {
    return Failure(StoreFailureKind::kLimit, "the owner holds the key too often");
  }
  if (mine == nullptr) {
    if (auto hindrance = Hindrance(record, op.hold.hold_id)) return *hindrance;
  }
  BeginChange(name);
  const bool is_new = mine == nullptr;
  if (is_new) {
    const int64_t number = NumberOf(record, op.hold.owner);
    record.holds.push_back(NewHold(op, now));
    mine = &record.holds.back();
    mine->number = number;
  }
  Take(*mine, op, now);
  if (is_new && !op.untold) news_.Granted(name, record, *mine, now);
  Granted granted = GrantOf(record, *mine, now, false);
  EndChange(name, now);
  return granted;
}

Result LockTable::TakeNew(const AcquireOp& op, BootTime now) {
  const KeyName& name = op.hold.name;
  const KeyRecord* const held = Find(name);
  if (held != nullptr) {
    if (auto hindrance = Hindrance(*held, op.hold.hold_id)) return *hindrance;
  }
  const bool joins_readers = op.mode == Mode::kShared && IsHeld(held);
  const std::optional<int64_t> token = joins_readers ? held->token : tokens_->Next();
  if (!token.has_value()) {
    return Failure(StoreFailureKind::kOutOfMemory, "no fencing token could be reserved");
  }
  // Where its expiry was noticed by this very request, there is nothing to wake for.
  const bool alone = op.mode == Mode::kExclusive;
  if (alone && !freed_.empty() && freed_.back().name == name) freed_.pop_back();
  KeyRecord& record = BeginChange(name);
  record.mode = op.mode;
  record.limit = op.limit;
  HoldRecord& hold = record.holds.emplace_back(NewHold(op, now));
  (op.mode == Mode::kPermit ? hold.number : record.token) = *token;
  Take(hold, op, now);
  if (!op.untold) news_.Granted(name, record, hold, now);
  Granted granted = GrantOf(record, hold, now, false);
  EndChange(name, now);
  return granted;
}

Result LockTable::Do(const ReleaseOp& op, BootTime now) {
  const HoldRef& ref = op.hold;
  KeyRecord* const record = Settle(ref.name, now);
  // Whose answer was lost does not know which hold it joined.
  HoldRecord* const hold = FindHold(record, ref, /*any_id=*/op.kind == ReleaseKind::kUndo);
  if (hold == nullptr) return GoneFrom(record, ref.owner);
  const bool known = Remembers(*hold, op.op_id);
  if ((op.kind == ReleaseKind::kOne && known) || (op.kind == ReleaseKind::kUndo && !known)) {
    Released unchanged;
    unchanged.owner_count = CountOf(record, ref.owner);
    unchanged.hold_count = hold->count;
    return unchanged;
  }

  BeginChange(ref.name);
  hold->count -= op.kind == ReleaseKind::kAll ? hold->count : 1;
  if (op.kind == ReleaseKind::kUndo) {
    hold->ops.erase(std::find(hold->ops.begin(), hold->ops.end(), op.op_id));
  } else {
    Remember(*hold, op.op_id);
  }
  Released released;
  released.hold_count = hold->count;
  BootTime kept_until;
  if (hold->count == 0) {
    news_.Ended(EndOfRelease(op.kind), ref.name, *record, *hold, LossReason::kSessionClosed);
    BootTime until = op.kind == ReleaseKind::kUndo ? BootTime() : hold->min_until;
    if (op.kind == ReleaseKind::kAll) until = std::max(until, now + hold->release_delay);
    const auto place = record->holds.begin() + (hold - record->holds.data());
    kept_until = EndHold(*record, place, until, now);
  }
  released.owner_count = CountOf(record, ref.owner);
  const bool permit = record->mode == Mode::kPermit;
  if (permit ? released.owner_count == 0 : record->holds.empty()) {
    released.kept_for = std::max(kept_until - now, absl::ZeroDuration());
    released.freed = released.kept_for == absl::ZeroDuration();
  }
  EndChange(ref.name, now, /*permit_freed=*/permit && released.freed);
  if (!followed_) HandOn(ref.name, released, now);
  return released;
}

Result LockTable::Do(const PassOnOp& op, BootTime now) {
  const std::string& daemon = op.place.daemon;
  KeyRecord* const record = Settle(op.name, now);
  if (op.kind == PassOnOp::Kind::kUnclaimed) {
    if (record == nullptr) lines_.PassOver(daemon, now);
  } else if (op.kind == PassOnOp::Kind::kLeaveAll) {
    lines_.LeaveAll(op.name, daemon);
  } else if (op.kind == PassOnOp::Kind::kLeave) {
    lines_.Leave(op.name, op.place);
  }
  if (record != nullptr && op.kind != PassOnOp::Kind::kUnclaimed && record->writer_until > now) {
    record->writer_until = BootTime();
    freed_.push_back({op.name, ""});
  }
  const bool kept = record != nullptr && record->reserved == daemon;
  if (kept && !lines_.HasAny(op.name, daemon)) EndReservation(op.name, now);
  Released released;
  released.freed = Find(op.name) == nullptr;
  HandOn(op.name, released, now);
  return released;
}

void LockTable::HandOn(const KeyName& name, Released& released, BootTime now) {
  if (Find(name) != nullptr || now < grace_until_) return;
  released.handed_to = HandOn(name, now);
  if (released.handed_to.empty()) return;
  released.freed = false;
  released.kept_for = limits::kClaimTime;
}

std::string LockTable::HandOn(const KeyName& name, BootTime now) {
  const Place* const first = lines_.First(name, now);
  if (first == nullptr) return "";
  const std::string daemon = first->daemon;
  if (!freed_.empty() && freed_.back().name == name) freed_.pop_back();
  KeyRecord& record = BeginChange(name);
  record.kept_until = now + limits::kClaimTime;
  record.reserved = daemon;
  EndChange(name, now);
  freed_.push_back({name, daemon});
  return daemon;
}

void LockTable::EndReservation(const KeyName& name, BootTime now) {
  BeginChange(name).kept_until = now;
  EndChange(name, now);
  freed_.pop_back();
}

Result LockTable::Do(const RenewOp& op, BootTime now) {
  KeyRecord* const record = Settle(op.hold.name, now);
  HoldRecord* const hold = FindHold(record, op.hold, /*any_id=*/false);
  if (hold == nullptr) return GoneFrom(record, op.hold.owner);
  const BootTime deadline = std::max(hold->deadline, std::min(now + op.lease, hold->max_until));
  if (deadline != hold->deadline) {
    BeginChange(op.hold.name);
    hold->deadline = deadline;
    EndChange(op.hold.name, now);
  }
  return Renewed{.lease_remaining = deadline - now, .max_hold_remaining = hold->max_until - now};
}

Result LockTable::Do(const ForceOp& op, BootTime now) {
  Forced forced;
  KeyRecord* const record = Settle(op.name, now);
  if (record == nullptr) return forced;
  const auto is_meant = [&](const HoldRecord& hold) {
    return op.hold_id.empty() || hold.hold_id == op.hold_id;
  };
  BeginChange(op.name);
  BootTime over = now;
  for (HoldRecord& hold : record->holds) {
    if (!is_meant(hold)) continue;
    forced.holds++;
    if (forced.holders.size() < limits::kMaxHoldersInAnswer) {
      forced.holders.push_back(StateOf(*record, hold, now));
    }
    hold.max_until = hold.deadline;
    over = std::max(over, EndOf(hold));
  }
  if (op.immediate) {
    for (const HoldRecord& hold : record->holds) {
      if (!is_meant(hold)) continue;
      news_.Ended(KeyNews::Kind::kLost, op.name, *record, hold, LossReason::kForced);
    }
    std::erase_if(record->holds, is_meant);
    if (op.hold_id.empty()) {
      record->kept_until = BootTime();
      record->kept_permits.clear();
    }
    over = now;
  }
  for (const BootTime kept : record->kept_permits) over = std::max(over, kept);
  forced.over_in = std::max(over, record->kept_until) - now;
  EndChange(op.name, now, /*permit_freed=*/op.immediate && record->mode == Mode::kPermit);
  return forced;
}

Result LockTable::Do(const InspectOp& op, BootTime now) {
  const KeyRecord* const record = Settle(op.name, now);
  KeyReport report = ReportOf(op.name, record != nullptr ? *record : KeyRecord(),
                              limits::kMaxHoldersInReport, now);
  report.line = lines_.Standing(op.name, limits::kMaxWaitersInReport, now);
  return report;
}

Result LockTable::Do(const ListOp& op, BootTime now) {
  const std::string& start = std::max(op.prefix, op.cursor);
  auto it = entries_.lower_bound(KeyName{op.ns, start});
  if (it != entries_.end() && it->first.key == op.cursor) ++it;  // the last one of the last page
  ListPage page;
  for (size_t seen = 0; it != entries_.end() && it->first.ns == op.ns; ++it, ++seen) {
    if (!absl::StartsWith(it->first.key, op.prefix)) break;
    if (seen == limits::kKeysPerListStep) {
      page.next_cursor = std::prev(it)->first.key;
      break;
    }
    KeyReport report = ReportOf(it->first, it->second.record, limits::kMaxHoldersInAnswer, now);
    if (!report.free()) page.keys.push_back(std::move(report));
  }
  return page;
}

Result LockTable::Do(const SubscribeOp& /*op*/, BootTime /*now*/) { return Subscribed{}; }

Result LockTable::Do(const WatchOp& /*op*/, BootTime /*now*/) {
  news_.Open();
  return Subscribed{};
}

Result LockTable::Do(const UnsubscribeOp& /*op*/, BootTime /*now*/) { return NoAnswer(); }
Result LockTable::Do(const UnwatchOp& /*op*/, BootTime /*now*/) { return NoAnswer(); }
Result LockTable::Do(const TellOp& /*op*/, BootTime /*now*/) { return NoAnswer(); }

size_t LockTable::DropExpired(BootTime now, size_t max) {
  size_t keys = 0;
  for (; keys < max && NextExpiry() <= now; ++keys) {
    Settle(KeyName(expiries_.begin()->second), now);
  }
  return keys;
}

BootTime LockTable::NextExpiry() const {
  return expiries_.empty() ? BootTime::Infinite() : expiries_.begin()->first;
}

const KeyRecord* LockTable::Find(const KeyName& name) const {
  const auto it = entries_.find(name);
  return it != entries_.end() ? &it->second.record : nullptr;
}

void LockTable::Restore(const KeyName& name, std::optional<KeyRecord> record) {
  const auto it = entries_.find(name);
  if (it != entries_.end()) {
    expiries_.erase({it->second.due, name});
    entries_.erase(it);
  }
  if (!record.has_value()) return;
  Entry& entry = entries_[name];
  entry.record = *std::move(record);
  Index(name, entry);
}

KeyRecord* LockTable::Settle(const KeyName& name, BootTime now) {
  auto it = entries_.find(name);
  if (it == entries_.end()) return nullptr;
  if (it->second.due > now) return &it->second.record;

  KeyRecord& record = BeginChange(name);
  for (size_t i = record.holds.size(); i-- > 0;) {
    const auto hold = record.holds.begin() + static_cast<ptrdiff_t>(i);
    if (hold->deadline > now) continue;
    news_.Ended(KeyNews::Kind::kLost, name, record, *hold);
    EndHold(record, hold, EndOf(*hold), now);
  }
  std::erase_if(record.kept_permits, [&](BootTime kept) { return kept <= now; });
  EndChange(name, now, /*permit_freed=*/record.mode == Mode::kPermit);
  it = entries_.find(name);
  return it != entries_.end() ? &it->second.record : nullptr;
}

KeyRecord& LockTable::BeginChange(const KeyName& name) {
  const auto [it, is_new] = entries_.try_emplace(name);
  if (observer_ != nullptr) observer_->BeforeChange(name, is_new ? nullptr : &it->second.record);
  if (!is_new) expiries_.erase({it->second.due, name});
  return it->second.record;
}

void LockTable::EndChange(const KeyName& name, BootTime now, bool permit_freed) {
  const auto it = entries_.find(name);
  const KeyRecord& record = it->second.record;
  const bool over = record.holds.empty() && record.kept_until <= now && record.kept_permits.empty();
  if (over || permit_freed) freed_.push_back({name, ""});
  if (over) {
    entries_.erase(it);
  } else {
    Index(name, it->second);
  }
}

void LockTable::Index(const KeyName& name, Entry& entry) {
  entry.due = DueOf(entry.record);
  expiries_.insert({entry.due, name});
}

}  // namespace holdfast::memory
