// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/lock_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "src/base/limits.h"

namespace holdfast::memory {
namespace {

using Result = decltype(StoreReply::result);

StoreFailure Failure(StoreFailureKind kind, std::string message) {
  return {.kind = kind, .maybe_applied = false, .message = std::move(message)};
}

// Why the key cannot get one hold more, if it cannot.
std::optional<StoreFailure> Hindrance(const KeyRecord& record, const std::string& hold_id) {
  if (record.holds.size() >= limits::kMaxHoldsPerKey) {
    return Failure(StoreFailureKind::kLimit, "the key has as many holds as it may");
  }
  for (const HoldRecord& hold : record.holds) {
    if (hold.hold_id == hold_id) return Failure(StoreFailureKind::kOther, "the hold id is in use");
  }
  return std::nullopt;
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

// Of the permit that the owner holds.
int64_t NumberOf(const KeyRecord& record, const std::string& owner) {
  for (const HoldRecord& hold : record.holds) {
    if (hold.owner == owner) return hold.number;
  }
  return 0;
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

// A hold is over; until `kept` what it held is kept back. Answers until when that is so in all.
BootTime EndHold(KeyRecord& record, std::vector<HoldRecord>::iterator hold, BootTime kept,
                 BootTime now) {
  const std::string owner = std::move(hold->owner);
  record.holds.erase(hold);
  if (record.mode != Mode::kPermit) {
    record.kept_until = std::max(record.kept_until, kept);
    return record.kept_until;
  }
  for (HoldRecord& other : record.holds) {
    if (other.owner != owner) continue;
    other.min_until = std::max(other.min_until, kept);  // the same permit
    return other.min_until;
  }
  if (kept > now) record.kept_permits.push_back(kept);
  return kept;
}

size_t PermitsTaken(const KeyRecord& record) {
  absl::flat_hash_set<absl::string_view> owners;
  for (const HoldRecord& hold : record.holds) owners.insert(hold.owner);
  return owners.size() + record.kept_permits.size();
}

// When the hold's part of the key can be free without a release.
BootTime EndOf(const HoldRecord& hold) {
  return std::max(hold.deadline + hold.release_delay, hold.min_until);
}

// Whether an owner who holds nothing of the key can take it in this mode.
bool HasRoom(const KeyRecord& record, Mode mode) {
  if (mode != record.mode || mode == Mode::kExclusive) return false;
  return mode == Mode::kShared || PermitsTaken(record) < record.limit;
}

// Whether an owner who holds the key so can take it once more in this mode.
bool Agrees(const KeyRecord& record, Mode mode, uint32_t limit) {
  if (record.mode == Mode::kExclusive && mode == Mode::kShared) return true;
  return record.mode == mode && (mode != Mode::kPermit || record.limit == limit);
}

// Without a count yet.
HoldRecord NewHold(const AcquireOp& op, BootTime now) {
  return {.owner = op.hold.owner,
          .hold_id = op.hold.hold_id,
          .session = op.hold.session,
          .epoch = op.hold.epoch,
          .granted_at = now,
          .deadline = now,
          .max_until = now + op.max_hold,
          .min_until = now + op.min_hold,
          .release_delay = op.release_delay,
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

int64_t TokenOf(const KeyRecord& record, const HoldRecord& hold) {
  return record.mode == Mode::kPermit ? hold.number : record.token;
}

Granted GrantOf(const KeyRecord& record, const HoldRecord& hold, BootTime now, bool replayed) {
  return {.hold_id = hold.hold_id,
          .token = TokenOf(record, hold),
          .owner_count = CountOf(&record, hold.owner),
          .hold_count = hold.count,
          .lease_remaining = hold.deadline - now,
          .max_hold_remaining = hold.max_until - now,
          .replayed = replayed,
          .mode = record.mode,
          .more_fit = HasRoom(record, record.mode)};
}

std::vector<HolderState> HoldersOf(const KeyRecord& record, size_t max, BootTime now) {
  std::vector<HolderState> holders;
  for (const HoldRecord& hold : record.holds) {
    if (hold.deadline <= now) continue;
    if (holders.size() == max) break;
    holders.push_back({.owner = hold.owner,
                       .hold_id = hold.hold_id,
                       .session = hold.session,
                       .mode = record.mode,
                       .count = hold.count,
                       .note = hold.note,
                       .held_for = now - hold.granted_at,
                       .expires_in = hold.deadline - now,
                       .foreign = false,
                       .token = TokenOf(record, hold)});
  }
  return holders;
}

Busy BusyOf(const KeyRecord& record, Mode mode, BootTime now) {
  BootTime first = BootTime::Infinite();
  BootTime last = record.kept_until;
  const auto ends = [&](BootTime at) {
    first = std::min(first, at);
    last = std::max(last, at);
  };
  for (const HoldRecord& hold : record.holds) ends(EndOf(hold));
  for (BootTime kept : record.kept_permits) ends(kept);
  const bool one_will_do = mode == Mode::kPermit && record.mode == Mode::kPermit;
  return {.holders = HoldersOf(record, limits::kMaxHoldersInAnswer, now),
          .free_in = (one_will_do ? first : last) - now};
}

KeyReport ReportOf(const KeyName& name, const KeyRecord& record, size_t max_holders, BootTime now) {
  KeyReport report;
  report.name = name;
  report.holders = HoldersOf(record, max_holders, now);
  report.mode = record.mode;
  report.limit = record.limit;
  if (!report.holders.empty()) {
    report.token = record.token;
    for (const HoldRecord& hold : record.holds) report.holds += hold.deadline > now ? 1 : 0;
    return report;
  }
  BootTime kept_until = record.kept_until;
  for (BootTime kept : record.kept_permits) kept_until = std::max(kept_until, kept);
  for (const HoldRecord& hold : record.holds) kept_until = std::max(kept_until, EndOf(hold));
  report.kept_for = std::max(kept_until - now, absl::ZeroDuration());
  return report;
}

BootTime DueOf(const KeyRecord& record) {
  if (record.holds.empty() && record.mode != Mode::kPermit) return record.kept_until;
  BootTime due = BootTime::Infinite();
  for (BootTime kept : record.kept_permits) due = std::min(due, kept);
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
  const HoldRef& ref = op.hold;
  KeyRecord* const record = Settle(ref.name, now);
  HoldRecord* const mine = FindHold(record, ref, /*any_id=*/true);
  if (mine != nullptr && Remembers(*mine, op.op_id)) return GrantOf(*record, *mine, now, true);
  if (op.replay_only) return GoneFrom(record, ref.owner);

  if (CountOf(record, ref.owner) > 0) return TakeAgain(op, *record, mine, now);
  if (op.only_reentry && !IsHeld(record)) return Busy{};
  if (record != nullptr) {
    const bool permits = record->mode == Mode::kPermit && op.mode == Mode::kPermit;
    if (permits && record->limit != op.limit) return ModeRefused{Mode::kPermit, record->limit};
    if (op.only_reentry || !HasRoom(*record, op.mode)) return BusyOf(*record, op.mode, now);
  }
  if (now < grace_until_) return InGrace{.remaining = grace_until_ - now};
  return TakeNew(op, now);
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
  if (mine == nullptr) {
    const int64_t number = NumberOf(record, op.hold.owner);
    record.holds.push_back(NewHold(op, now));
    mine = &record.holds.back();
    mine->number = number;
  }
  Take(*mine, op, now);
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
  if (alone && !freed_.empty() && freed_.back() == name) freed_.pop_back();
  KeyRecord& record = BeginChange(name);
  record.mode = op.mode;
  record.limit = op.limit;
  HoldRecord& hold = record.holds.emplace_back(NewHold(op, now));
  (op.mode == Mode::kPermit ? hold.number : record.token) = *token;
  Take(hold, op, now);
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
  return ReportOf(op.name, record != nullptr ? *record : KeyRecord(), limits::kMaxHoldersInReport,
                  now);
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
    if (hold->deadline <= now) EndHold(record, hold, EndOf(*hold), now);
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
  if (over || permit_freed) freed_.push_back(name);
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
