// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/lock_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "src/base/limits.h"

namespace holdfast::memory {
namespace {

using Result = decltype(StoreReply::result);

StoreFailure Failure(StoreFailureKind kind, std::string message) {
  return {.kind = kind, .maybe_applied = false, .message = std::move(message)};
}

HoldRecord* FindHold(KeyRecord* record, const HoldRef& ref, bool any_id) {
  if (record == nullptr) return nullptr;
  for (HoldRecord& hold : record->holds) {
    if (hold.owner == ref.owner && hold.session == ref.session && hold.epoch == ref.epoch &&
        (any_id || hold.hold_id == ref.hold_id)) {
      return &hold;
    }
  }
  return nullptr;
}

uint32_t CountOf(const KeyRecord* record, const std::string& owner) {
  uint32_t count = 0;
  if (record == nullptr) return 0;
  for (const HoldRecord& hold : record->holds) count += hold.owner == owner ? hold.count : 0;
  return count;
}

bool IsHeld(const KeyRecord* record) { return record != nullptr && !record->holds.empty(); }

bool Remembers(const HoldRecord& hold, const std::string& op_id) {
  return !op_id.empty() && std::find(hold.ops.begin(), hold.ops.end(), op_id) != hold.ops.end();
}

void Remember(HoldRecord& hold, const std::string& op_id) {
  if (op_id.empty()) return;
  hold.ops.push_back(op_id);
  if (hold.ops.size() > limits::kOpsPerHold) hold.ops.erase(hold.ops.begin());
}

// A holder's time is over; what its min_hold asks for stays with the key.
void EndHold(KeyRecord& record, std::vector<HoldRecord>::iterator hold) {
  record.kept_until = std::max(record.kept_until, hold->min_until);
  record.holds.erase(hold);
}

// Without a count yet.
HoldRecord NewHold(const AcquireOp& op, BootTime now) {
  return {.owner = op.hold.owner,
          .hold_id = op.hold.hold_id,
          .session = op.hold.session,
          .epoch = op.hold.epoch,
          .mode = op.mode,
          .granted_at = now,
          .deadline = now,
          .max_until = now + op.max_hold,
          .min_until = now + op.min_hold,
          .note = op.note,
          .ops = {}};
}

// One count more, and at least this lease.
void Take(HoldRecord& hold, const AcquireOp& op, BootTime now) {
  hold.count += 1;
  hold.deadline = std::max(hold.deadline, std::min(now + op.lease, hold.max_until));
  Remember(hold, op.op_id);
}

HoldGone GoneFrom(const KeyRecord* record, const std::string& owner) {
  return {.held_by_other = IsHeld(record), .owner_count = CountOf(record, owner)};
}

Granted GrantOf(const KeyRecord& record, const HoldRecord& hold, BootTime now, bool replayed) {
  return {.hold_id = hold.hold_id,
          .token = record.token,
          .owner_count = CountOf(&record, hold.owner),
          .hold_count = hold.count,
          .lease_remaining = hold.deadline - now,
          .max_hold_remaining = hold.max_until - now,
          .replayed = replayed};
}

std::vector<HolderState> HoldersOf(const KeyRecord& record, BootTime now) {
  std::vector<HolderState> holders;
  for (const HoldRecord& hold : record.holds) {
    if (hold.deadline <= now) continue;
    if (holders.size() == limits::kMaxHoldersInAnswer) break;
    holders.push_back({.owner = hold.owner,
                       .hold_id = hold.hold_id,
                       .session = hold.session,
                       .mode = hold.mode,
                       .count = hold.count,
                       .note = hold.note,
                       .held_for = now - hold.granted_at,
                       .expires_in = hold.deadline - now});
  }
  return holders;
}

Busy BusyOf(const KeyRecord& record, BootTime now) {
  BootTime free_at = record.kept_until;
  for (const HoldRecord& hold : record.holds) {
    free_at = std::max({free_at, hold.deadline, hold.min_until});
  }
  return {.holders = HoldersOf(record, now), .free_in = free_at - now};
}

KeyReport ReportOf(const KeyName& name, const KeyRecord& record, BootTime now) {
  KeyReport report;
  report.name = name;
  report.holders = HoldersOf(record, now);
  if (!report.holders.empty()) {
    report.mode = report.holders.front().mode;
    report.token = record.token;
    return report;
  }
  BootTime kept_until = record.kept_until;
  for (const HoldRecord& hold : record.holds) kept_until = std::max(kept_until, hold.min_until);
  report.kept_for = std::max(kept_until - now, absl::ZeroDuration());
  return report;
}

BootTime DueOf(const KeyRecord& record) {
  if (record.holds.empty()) return record.kept_until;
  BootTime due = BootTime::Infinite();
  for (const HoldRecord& hold : record.holds) due = std::min(due, hold.deadline);
  return due;
}

}  // namespace

LockTable::LockTable(TokenSource* tokens, TableObserver* observer)
    : tokens_(tokens), observer_(observer) {}

StoreReply LockTable::Apply(const StoreRequest& request, BootTime now) {
  StoreReply reply;
  reply.id = request.id;
  reply.result = std::visit([&](const auto& op) { return Do(op, now); }, request.op);
  return reply;
}

// `will_wait` and `others_wait` need no mark here: every release is told to whoever subscribed.
Result LockTable::Do(const AcquireOp& op, BootTime now) {
  if (op.mode != Mode::kExclusive) {
    return Failure(StoreFailureKind::kOther, "the embedded store has exclusive locks only");
  }
  const HoldRef& ref = op.hold;
  KeyRecord* const record = Settle(ref.name, now);
  HoldRecord* const mine = FindHold(record, ref, /*any_id=*/true);
  if (mine != nullptr && Remembers(*mine, op.op_id)) return GrantOf(*record, *mine, now, true);
  if (op.replay_only) return GoneFrom(record, ref.owner);

  if (CountOf(record, ref.owner) > 0) return TakeAgain(op, *record, mine, now);
  if (op.only_reentry && !IsHeld(record)) return Busy{};
  if (record != nullptr) return BusyOf(*record, now);
  if (now < grace_until_) return InGrace{.remaining = grace_until_ - now};
  return TakeNew(op, now);
}

Result LockTable::TakeAgain(const AcquireOp& op, KeyRecord& record, HoldRecord* mine,
                            BootTime now) {
  const KeyName& name = op.hold.name;
  if (op.refuse_reentry) return ReentryRefused{};
  if (CountOf(&record, op.hold.owner) >= limits::kMaxHoldCount) {
    return Failure(StoreFailureKind::kOther, "the owner holds the key too often");
  }
  if (mine == nullptr) {
    for (const HoldRecord& hold : record.holds) {
      if (hold.hold_id == op.hold.hold_id) {
        return Failure(StoreFailureKind::kOther, "the hold id is in use");
      }
    }
  }
  BeginChange(name);
  if (mine == nullptr) {
    record.holds.push_back(NewHold(op, now));
    mine = &record.holds.back();
  }
  Take(*mine, op, now);
  Granted granted = GrantOf(record, *mine, now, false);
  EndChange(name, now);
  return granted;
}

Result LockTable::TakeNew(const AcquireOp& op, BootTime now) {
  const std::optional<int64_t> token = tokens_->Next();
  if (!token.has_value()) {
    return Failure(StoreFailureKind::kOutOfMemory, "no fencing token could be reserved");
  }
  const KeyName& name = op.hold.name;
  // Where its expiry was noticed by this very request, there is nothing to wake for.
  if (!freed_.empty() && freed_.back() == name) freed_.pop_back();
  KeyRecord& record = BeginChange(name);
  record.token = *token;
  record.holds.push_back(NewHold(op, now));
  Take(record.holds.back(), op, now);
  Granted granted = GrantOf(record, record.holds.back(), now, false);
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
  if (hold->count == 0) {
    if (op.kind == ReleaseKind::kUndo) hold->min_until = BootTime();
    EndHold(*record, record->holds.begin() + (hold - record->holds.data()));
  }
  released.owner_count = CountOf(record, ref.owner);
  if (record->holds.empty()) {
    released.kept_for = std::max(record->kept_until - now, absl::ZeroDuration());
    released.freed = released.kept_for == absl::ZeroDuration();
  }
  EndChange(ref.name, now);
  return released;
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

Result LockTable::Do(const InspectOp& op, BootTime now) {
  const KeyRecord* const record = Settle(op.name, now);
  return ReportOf(op.name, record != nullptr ? *record : KeyRecord(), now);
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
    KeyReport report = ReportOf(it->first, it->second.record, now);
    if (!report.free()) page.keys.push_back(std::move(report));
  }
  return page;
}

Result LockTable::Do(const SubscribeOp& /*op*/, BootTime /*now*/) { return Subscribed{}; }

Result LockTable::Do(const UnsubscribeOp& /*op*/, BootTime /*now*/) {
  return Failure(StoreFailureKind::kOther, "unsubscribing has no answer");
}

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
    if (hold->deadline <= now) EndHold(record, hold);
  }
  EndChange(name, now);
  it = entries_.find(name);
  return it != entries_.end() ? &it->second.record : nullptr;
}

KeyRecord& LockTable::BeginChange(const KeyName& name) {
  const auto [it, is_new] = entries_.try_emplace(name);
  if (observer_ != nullptr) observer_->BeforeChange(name, is_new ? nullptr : &it->second.record);
  if (!is_new) expiries_.erase({it->second.due, name});
  return it->second.record;
}

void LockTable::EndChange(const KeyName& name, BootTime now) {
  const auto it = entries_.find(name);
  if (it->second.record.holds.empty() && it->second.record.kept_until <= now) {
    entries_.erase(it);
    freed_.push_back(name);
    return;
  }
  Index(name, it->second);
}

void LockTable::Index(const KeyName& name, Entry& entry) {
  entry.due = DueOf(entry.record);
  expiries_.insert({entry.due, name});
}

}  // namespace holdfast::memory
