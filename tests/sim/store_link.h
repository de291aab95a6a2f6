// SPDX-License-Identifier: Apache-2.0
//
// A store behind a network: the lock table, reached over a connection that
// delays everything, breaks now and then (what was in flight is answered
// kUnreachable, carried out or not), repeats answers and loses wake-ups. The
// store itself may be restarted empty; then it opens its grace period.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "src/store/memory/lock_table.h"
#include "tests/sim/world.h"

namespace holdfast::sim {

struct StoreFaults {
  double break_chance = 0;   // per request
  double repeat_chance = 0;  // per answer
  double lose_wake = 0;      // per wake-up
  absl::Duration delay_low;
  absl::Duration delay_high;
};

// The tokens of a server whose data may vanish: they grow with its wall clock.
class ServerTokens final : public memory::TokenSource {
 public:
  explicit ServerTokens(const DriftingClock* clock) : clock_(clock) {}
  std::optional<int64_t> Next() override;
  void Forget() { last_ = 0; }

 private:
  const DriftingClock* clock_;
  int64_t last_ = 0;
};

class StoreServer {
 public:
  StoreServer(World* world, double clock_rate, absl::Duration max_lease);

  StoreReply Apply(const StoreRequest& request);
  std::vector<memory::LockTable::Freed> TakeFreed() { return table_->TakeFreed(); }
  // Forgets everything, and grants nothing until the longest lease has passed.
  void RestartEmpty();
  memory::LockTable& table() { return *table_; }
  BootTime Now() const { return clock_.Now(); }

 private:
  World* world_;
  DriftingClock clock_;
  absl::Duration max_lease_;
  ServerTokens tokens_;
  std::unique_ptr<memory::LockTable> table_;
};

// One daemon's connection. Listener calls come from the world's actions, never from Submit.
class StoreLink {
 public:
  struct Listener {
    std::function<void(StoreReply)> reply;
    std::function<void(StoreEvent)> event;
  };
  StoreLink(World* world, StoreServer* server, StoreFaults faults, Listener listener);

  void Connect();
  void Submit(StoreRequest request);
  // Everything in flight is lost with the daemon that asked.
  void Cut();
  void Break();
  void set_faults(StoreFaults faults) { faults_ = faults; }
  bool up() const { return up_; }

 private:
  absl::Duration Delay();
  void Arrive(uint64_t connection, StoreRequest request);
  void Answer(uint64_t connection, StoreReply reply);

  World* world_;
  StoreServer* server_;
  StoreFaults faults_;
  Listener listener_;
  uint64_t connection_ = 0;  // answers of an earlier one do not count
  bool up_ = false;
  absl::Duration last_arrival_;
  absl::Duration last_answer_;
  std::deque<uint64_t> in_flight_;
  absl::flat_hash_set<KeyName> subscribed_;
};

}  // namespace holdfast::sim
