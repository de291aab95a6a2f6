// SPDX-License-Identifier: Apache-2.0
//
// A store that several daemons share, behind a network: the lock table, and a
// connection for each daemon's life that delays everything, breaks now and then
// (what was in flight is answered kUnreachable, carried out or not), repeats
// answers and loses wake-ups. The store itself may be restarted empty; then it
// opens its grace period.
//
// For lines that daemons share:
//   * a release and the attempt that follows it are one step (Connection::Arrive);
//   * a living daemon says so every limits::kDaemonBeat (StoreServer::Beat);
//   * who is woken is decided in StoreServer::TellFreed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "src/store/memory/lock_table.h"
#include "tests/sim/world.h"

namespace holdfast::sim {

struct StoreFaults {
  double break_chance = 0;   // per step
  double repeat_chance = 0;  // per answer
  double lose_wake = 0;      // per wake-up and daemon
  Nanos delay_low = kMillisecond / 20;
  Nanos delay_high = 6 * kMillisecond;
};

// The tokens of a server whose data may vanish: they grow with its wall clock, which may jump
// ahead.
class ServerTokens final : public memory::TokenSource {
 public:
  explicit ServerTokens(const DriftingClock* clock) : clock_(clock) {}
  std::optional<int64_t> Next() override;
  void Forget() { last_ = 0; }
  void JumpAhead(Nanos by) { ahead_ += by; }

 private:
  const DriftingClock* clock_;
  Nanos ahead_ = 0;
  int64_t last_ = 0;
};

// Sees each request before and after it is carried out.
class StoreWatcher {
 public:
  virtual ~StoreWatcher() = default;
  virtual void BeforeRequest(const StoreRequest& request) = 0;
  virtual void AfterRequest(const StoreRequest& request, const StoreReply& reply) = 0;
};

class StoreLink;

class StoreServer {
 public:
  StoreServer(World* world, double clock_rate, Nanos max_lease);

  void set_watcher(StoreWatcher* watcher) { watcher_ = watcher; }
  // `followed`: the next request belongs to the same step.
  StoreReply Apply(const StoreRequest& request, bool followed);
  // Of what the last step freed. Kept apart from Apply: a step may be two requests.
  void TellFreed();
  // The daemon lives.
  void Beat(const std::string& daemon);
  // Forgets everything, and grants nothing until the longest lease has passed.
  void RestartEmpty();
  void JumpWallClock(Nanos ahead) { tokens_.JumpAhead(ahead); }

  memory::LockTable& table() { return *table_; }
  BootTime Now() const { return clock_.Now(); }
  Nanos restarted_at() const { return restarted_at_; }

 private:
  friend class StoreLink;

  World* const world_;
  const DriftingClock clock_;
  const Nanos max_lease_;
  ServerTokens tokens_;
  std::unique_ptr<memory::LockTable> table_;
  StoreWatcher* watcher_ = nullptr;
  std::vector<StoreLink*> links_;
  Nanos restarted_at_ = -1;
};

// The connection of one daemon's life. Listener calls come from the world's actions, never from
// Submit. Lives as long as the world.
class StoreLink {
 public:
  struct Listener {
    std::function<void(StoreReply)> reply;
    std::function<void(StoreEvent)> event;
  };
  // `daemon`: what this life of it calls itself.
  StoreLink(World* world, StoreServer* server, std::string daemon, const StoreFaults* faults,
            Listener listener);

  void Connect();
  // What one turn of the daemon has for the store, in order.
  void Submit(std::vector<StoreRequest> requests);
  // The daemon is dead: nothing is answered any more. What was sent may still be carried out.
  void Orphan();
  void Break();
  bool up() const { return up_; }
  size_t subscriptions() const { return subscribed_.size(); }
  // The daemon is stopped: it does not beat.
  void set_stopped(bool stopped) { stopped_ = stopped; }
  void Wake(const memory::LockTable::Freed& freed);

 private:
  // Mostly one request; a release and the attempt that follows it are carried out together.
  using Batch = std::vector<StoreRequest>;

  Nanos Delay() { return world_->Between(faults_->delay_low, faults_->delay_high); }
  void Send(Batch batch);
  void Arrive(uint64_t connection, const Batch& batch);
  void SendAnswer(uint64_t connection, StoreReply reply);
  void Answer(uint64_t connection, StoreReply reply);
  void Beat(uint64_t connection);

  World* const world_;
  StoreServer* const server_;
  const std::string daemon_;
  const StoreFaults* const faults_;
  Listener listener_;
  uint64_t connection_ = 0;  // answers of an earlier one do not count
  bool up_ = false;
  bool orphaned_ = false;
  bool stopped_ = false;
  Nanos last_arrival_ = 0;
  Nanos last_answer_ = 0;
  std::deque<uint64_t> in_flight_;
  absl::btree_set<KeyName> subscribed_;
};

}  // namespace holdfast::sim
