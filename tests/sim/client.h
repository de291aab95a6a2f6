// SPDX-License-Identifier: Apache-2.0
//
// A simulated client: it takes, nests, feeds, renews and releases locks at
// random, retries commands, falls silent, is stopped, dies. It computes what it may
// rely on exactly as DESIGN's "holder's clock" says, on a clock that drifts;
// what it believes is what the checks compare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/daemon.h"

namespace holdfast::sim {

// A hold as its holder sees it.
struct Belief {
  KeyName name;
  std::string owner;
  std::string hold_id;
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;
  int64_t token = 0;
  int count = 0;
  absl::Duration lease;
  BootTime valid_until;
  BootTime hard_until = BootTime::Infinite();
  absl::Duration feed;
};

struct ClientPlan {
  int number = 0;
  bool bare = false;  // unary calls and bare leases, no session
  double clock_rate = 1;
  absl::Duration ttl;
  std::vector<std::string> keys;
  std::vector<std::string> owners;  // to choose from; "" for one that the daemon makes
  bool all_modes = false;           // else EXCLUSIVE only
};

// Counts over all seeds, so that a simulation that does nothing cannot pass for one that finds
// nothing.
struct Tally {
  int64_t grants = 0, reentries = 0, busy = 0, expired_waits = 0, losses = 0, errors = 0,
          retries = 0, releases = 0, reads = 0, permits = 0, mode_refusals = 0, forced = 0,
          deadlocks = 0;
  int64_t sets = 0, sets_refused = 0;
  int64_t together = 0;  // steps at which several owners held one key
};

class SimClient {
 public:
  SimClient(World* world, SimDaemon* daemon, ClientPlan plan, Tally* tally);

  void Start();
  // It does nothing more; what it holds it must get rid of by dying.
  void Die(engine::StreamEnd how);

  // What it would answer now if asked "do you hold this?".
  std::vector<const Belief*> Beliefs() const;
  const std::optional<std::string>& complaint() const { return complaint_; }

 private:
  struct Asked {
    enum class Kind { kAcquire, kRelease, kRenew, kPing, kFeed, kLostAck };
    Kind kind = Kind::kAcquire;
    BootTime sent;
    absl::Duration wait;
    absl::Duration lease;
    absl::Duration feed;
    Mode mode = Mode::kExclusive;
    uint32_t limit = 0;
    std::vector<engine::KeyAndMode> keys;  // of an acquire of several
    std::string command_id;
    std::string hold_id;
    uint64_t channel = 0;  // of a unary call
    bool was_stopped = false;
  };

  BootTime Now() const { return clock_.Now(); }
  BootTime SessionEnd() const;
  void Open();
  void Ping();
  void Act();
  void ChooseMode(Mode& mode, uint32_t& limit);
  void TryAcquire();
  void TryAcquireAll();
  // Asks, and sometimes asks again.
  void AskMaybeTwice(const Asked& asked, std::function<engine::Command(engine::CommandHead)> make,
                     bool repeat);
  void TryRelease();
  void TryRenew(Belief& belief);
  void CancelOne();
  void Stop();
  uint64_t Ask(Asked asked, std::function<engine::Command(engine::CommandHead)> make);
  void OnEvent(uint64_t channel, const engine::Event& event);
  void OnReply(uint64_t channel, const engine::Reply& reply);
  void OnAllGranted(const Asked& asked, const engine::AllGranted& all);
  bool IsFirstAnswer(const Asked& asked);
  void OnGrant(const Asked& asked, const engine::Grant& grant, bool first_answer);
  void OnClosed();
  Belief* Find(const std::string& hold_id);
  void Forget(const std::string& hold_id);
  void Complain(std::string what);

  World* world_;
  SimDaemon* daemon_;
  ClientPlan plan_;
  Tally* tally_;
  DriftingClock clock_;
  bool alive_ = true;
  bool opened_ = false;
  bool stopped_ = false;
  bool silent_ = false;
  uint64_t life_ = 0;
  uint64_t channel_ = 0;
  BootTime last_answered_ping_;
  uint64_t last_request_ = 0;
  uint64_t last_command_ = 0;
  std::map<std::pair<uint64_t, uint64_t>, Asked> asked_;
  std::map<std::string, Belief> beliefs_;
  std::map<std::string, int> commands_seen_;  // answers of retried commands count once
  std::vector<std::function<void()>> while_stopped_;
  std::optional<std::string> complaint_;
};

}  // namespace holdfast::sim
