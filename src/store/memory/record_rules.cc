// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/record_rules.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "src/base/limits.h"

namespace holdfast::memory {
namespace {

size_t PermitsTaken(const KeyRecord& record) {
  absl::flat_hash_set<absl::string_view> owners;
  for (const HoldRecord& hold : record.holds) owners.insert(hold.owner);
  return owners.size() + record.kept_permits.size();
}

int64_t TokenOf(const KeyRecord& record, const HoldRecord& hold) {
  return record.mode == Mode::kPermit ? hold.number : record.token;
}

std::vector<HolderState> HoldersOf(const KeyRecord& record, size_t max, BootTime now) {
  std::vector<HolderState> holders;
  for (const HoldRecord& hold : record.holds) {
    if (hold.deadline <= now) continue;
    if (holders.size() == max) break;
    holders.push_back(StateOf(record, hold, now));
  }
  return holders;
}

}  // namespace

StoreFailure Failure(StoreFailureKind kind, std::string message) {
  return {.kind = kind, .maybe_applied = false, .message = std::move(message)};
}

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

BootTime EndOf(const HoldRecord& hold) {
  return std::max(hold.deadline + hold.release_delay, hold.min_until);
}

bool HasRoom(const KeyRecord& record, Mode mode) {
  if (mode != record.mode || mode == Mode::kExclusive) return false;
  return mode == Mode::kShared || PermitsTaken(record) < record.limit;
}

bool Agrees(const KeyRecord& record, Mode mode, uint32_t limit) {
  if (record.mode == Mode::kExclusive && mode == Mode::kShared) return true;
  return record.mode == mode && (mode != Mode::kPermit || record.limit == limit);
}

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
          .token = TokenOf(record, hold),
          .owner_count = CountOf(&record, hold.owner),
          .hold_count = hold.count,
          .lease_remaining = hold.deadline - now,
          .max_hold_remaining = hold.max_until - now,
          .replayed = replayed,
          .mode = record.mode,
          .more_fit = HasRoom(record, record.mode)};
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
          .free_in = (one_will_do ? first : last) - now,
          .handed_to = record.holds.empty() ? record.reserved : ""};
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

HolderState StateOf(const KeyRecord& record, const HoldRecord& hold, BootTime now) {
  return {.owner = hold.owner,
          .hold_id = hold.hold_id,
          .session = hold.session,
          .mode = record.mode,
          .count = hold.count,
          .note = hold.note,
          .held_for = now - hold.granted_at,
          .expires_in = hold.deadline - now,
          .foreign = false,
          .token = TokenOf(record, hold)};
}

}  // namespace holdfast::memory
