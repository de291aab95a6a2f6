// SPDX-License-Identifier: Apache-2.0
//
// The lock table: every operation of src/base/store_types.h, carried out at
// once in memory. It reads no clock and no file, so it is the reference of what
// a store does, and the oracle of the simulations.
//
//   LockTable table(&tokens);
//   StoreReply reply = table.Apply(request, now);
//   for (const KeyName& name : table.TakeFreed()) ...   // wake who waits for it
//
// Memory: one record per key that is held or kept back, and none for others. A
// hold that is over is dropped when its key is touched, or by DropExpired.
//
// Threading: none; one thread at a time. Time never goes back between calls.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "src/base/clock.h"
#include "src/base/store_types.h"
#include "src/store/memory/lock_record.h"
#include "src/store/memory/token_source.h"

namespace holdfast::memory {

// Hears of each change before it is made; `before` is null for a new record.
class TableObserver {
 public:
  virtual ~TableObserver() = default;
  virtual void BeforeChange(const KeyName& name, const KeyRecord* before) = 0;
};

class LockTable {
 public:
  // Both must outlive the table.
  explicit LockTable(TokenSource* tokens, TableObserver* observer = nullptr);

  // Carries out any request but UnsubscribeOp. Subscriptions are the caller's
  // business: SubscribeOp is answered Subscribed, and TakeFreed says who to wake.
  StoreReply Apply(const StoreRequest& request, BootTime now);

  // Before `until` no new ownership is granted (InGrace). What is held can be
  // taken once more by its owner, renewed and released.
  void SetGrace(BootTime until) { grace_until_ = until; }

  // Drops what is over, of at most `max` keys. Answers of how many.
  size_t DropExpired(BootTime now, size_t max);
  // When DropExpired will find something; infinite: not before another change.
  BootTime NextExpiry() const;

  // The keys that became free, or got a free permit, since the last call, in that order.
  std::vector<KeyName> TakeFreed() { return std::exchange(freed_, {}); }

  // What is stored under the name, over or not; null: nothing.
  const KeyRecord* Find(const KeyName& name) const;
  // Sets or (nullopt) removes a record as it is. The observer is not told.
  void Restore(const KeyName& name, std::optional<KeyRecord> record);

  size_t size() const { return entries_.size(); }

 private:
  using Result = decltype(StoreReply::result);

  struct Entry {
    KeyRecord record;
    BootTime due;  // its place in expiries_
  };

  Result Do(const AcquireOp& op, BootTime now);
  Result Do(const ReleaseOp& op, BootTime now);
  Result Do(const RenewOp& op, BootTime now);
  Result Do(const ForceOp& op, BootTime now);
  Result Do(const InspectOp& op, BootTime now);
  Result Do(const ListOp& op, BootTime now);
  Result Do(const SubscribeOp& op, BootTime now);
  Result Do(const UnsubscribeOp& op, BootTime now);

  Result TakeAgain(const AcquireOp& op, KeyRecord& record, HoldRecord* mine, BootTime now);
  // For an owner who holds nothing of the key: alone, or beside others.
  Result TakeNew(const AcquireOp& op, BootTime now);

  // Drops what is over of a key; null where nothing is left.
  KeyRecord* Settle(const KeyName& name, BootTime now);
  // Around each change of a record: tells the observer; puts it in its place
  // among the expiries, or removes it when nothing is left of it.
  KeyRecord& BeginChange(const KeyName& name);
  void EndChange(const KeyName& name, BootTime now, bool permit_freed = false);
  void Index(const KeyName& name, Entry& entry);

  TokenSource* const tokens_;
  TableObserver* const observer_;
  BootTime grace_until_;
  absl::btree_map<KeyName, Entry> entries_;                 // in key order, for List
  absl::btree_set<std::pair<BootTime, KeyName>> expiries_;  // one for each entry
  std::vector<KeyName> freed_;
};

}  // namespace holdfast::memory
