// SPDX-License-Identifier: Apache-2.0
//
// The lock table: every operation of src/base/store_types.h, carried out at
// once in memory. It reads no clock and no file, so it is the reference of what
// a store does, and the oracle of the simulations.
//
//   LockTable table(&tokens);
//   StoreReply reply = table.Apply(request, now, followed);
//   for (const LockTable::Freed& freed : table.TakeFreed()) ...   // wake who waits for it
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
#include "src/store/memory/key_lines.h"
#include "src/store/memory/lock_record.h"
#include "src/store/memory/news_desk.h"
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

  // Carries out any request that HasAnswer(). Subscriptions are the caller's
  // business: SubscribeOp is answered Subscribed, and TakeFreed says who to wake.
  // `followed`: the next request is in the same step (FollowsRelease).
  StoreReply Apply(const StoreRequest& request, BootTime now, bool followed = false);

  // The daemon lives. One that stands in a line has to say so every kDaemonBeat, or by an
  // AcquireOp.
  void Beat(const std::string& daemon, BootTime now) { lines_.Beat(daemon, now); }

  // Before `until` no new ownership is granted (InGrace). What is held can be
  // taken once more by its owner, renewed and released.
  void SetGrace(BootTime until) { grace_until_ = until; }

  // Drops what is over, of at most `max` keys. Answers of how many.
  size_t DropExpired(BootTime now, size_t max);
  // When DropExpired will find something; infinite: not before another change.
  BootTime NextExpiry() const;

  // A key became free, or got room; for `daemon` alone where that is set.
  struct Freed {
    KeyName name;
    std::string daemon;
  };
  // Those since the last call, in order.
  std::vector<Freed> TakeFreed() { return std::exchange(freed_, {}); }

  // WatchOp opens it.
  NewsDesk& news() { return news_; }

  // What is stored under the name, over or not; null: nothing.
  const KeyRecord* Find(const KeyName& name) const;
  // Sets or (nullopt) removes a record as it is. The observer is not told.
  void Restore(const KeyName& name, std::optional<KeyRecord> record);

  size_t size() const { return entries_.size(); }
  // How many keys have a line.
  size_t lines() const { return lines_.size(); }

 private:
  using Result = decltype(StoreReply::result);

  struct Entry {
    KeyRecord record;
    BootTime due;  // its place in expiries_
  };

  Result Do(const AcquireOp& op, BootTime now);
  Result Do(const ReleaseOp& op, BootTime now);
  Result Do(const PassOnOp& op, BootTime now);
  Result Do(const RenewOp& op, BootTime now);
  Result Do(const ForceOp& op, BootTime now);
  Result Do(const InspectOp& op, BootTime now);
  Result Do(const ListOp& op, BootTime now);
  Result Do(const SubscribeOp& op, BootTime now);
  Result Do(const UnsubscribeOp& op, BootTime now);
  Result Do(const WatchOp& op, BootTime now);
  Result Do(const UnwatchOp& op, BootTime now);
  Result Do(const TellOp& op, BootTime now);

  // Without its place in line.
  Result Attempt(const AcquireOp& op, BootTime now);
  void LeaveLine(const AcquireOp& op, Granted& granted, BootTime now);
  void StandInLine(const AcquireOp& op, BootTime now);
  // What is to be done before a request for a key that nobody holds: nullopt where it may be taken.
  std::optional<Result> MindLine(const AcquireOp& op, KeyRecord*& record, BootTime now);
  // The key is wholly free: keeps it for the first in line. Answers of that daemon; empty:
  // nobody's.
  std::string HandOn(const KeyName& name, BootTime now);
  void HandOn(const KeyName& name, Released& released, BootTime now);
  // The key was kept for a daemon, and is free now.
  void EndReservation(const KeyName& name, BootTime now);
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
  KeyLines lines_;
  bool followed_ = false;
  std::vector<Freed> freed_;
  NewsDesk news_;
};

}  // namespace holdfast::memory
