// SPDX-License-Identifier: Apache-2.0
//
// A simulated client: it takes, nests, feeds, renews and releases locks at
// random, retries commands, falls silent, is stopped, dies. It computes what it may
// rely on exactly as DESIGN's "holder's clock" says, on a clock that drifts;
// what it believes is what the checks compare.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/sim/daemon.h"
#include "tests/sim/tally.h"

namespace holdfast::sim {

// A hold as its holder sees it.
struct Belief {
  KeyName name;
  std::string owner;
  std::string hold_id;
  std::string session;
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;
  int64_t token = 0;
  uint32_t count = 0;
  absl::Duration lease;
  absl::Duration feed;
  BootTime valid_until;
  BootTime hard_until = BootTime::Infinite();
  Nanos asked_at = 0;  // true time
};

struct ClientPlan {
  int number = 0;
  bool bare = false;  // unary calls and bare leases, no session
  double clock_rate = 1;
  double drift = 0;  // of any clock, at most
  Nanos ttl = 0;
  int64_t unit = 1;   // leases, waits and so on are so many times longer than the shortest
  Nanos gap_low = 0;  // between two acts
  Nanos gap_high = 0;
  std::vector<KeyName> keys;
  std::vector<std::string> owners;  // to choose from; "" for one that the daemon makes
  bool all_modes = false;           // else EXCLUSIVE only
  bool fifo = false;                // some ask for FIFO
  bool sets = false;                // several keys at once
  bool patient = false;             // some waits outlast what a lost wake-up may cost
};

// Hears what a client knows and the checks need.
class ClientWatcher {
 public:
  virtual ~ClientWatcher() = default;
  // It says that it lives; its session may be kept until its ttl after that.
  virtual void OnSessionSpeaks(const std::string& session, Nanos ttl) = 0;
  virtual void OnBeliefGrown() = 0;
  // Something that the client can see for itself is wrong.
  virtual void OnComplaint(const std::string& what) = 0;
};

class SimClient : public SimDaemon::Peer {
 public:
  // `acts_left`: how often all clients together do something of their own accord.
  SimClient(World* world, std::vector<SimDaemon*> daemons, ClientPlan plan, int64_t* acts_left,
            Tally* tally, ClientWatcher* watcher);

  void Start();
  // From now on it only gives back what it has, and what it still gets.
  void Drain();
  bool drained() const;
  // It does nothing more; what it holds it must get rid of by dying.
  void Die(engine::StreamEnd how);
  bool alive() const { return alive_; }
  int number() const { return plan_.number; }

  // Whether it would say now that it holds.
  bool Relies(const Belief& belief) const;
  const std::vector<Belief>& beliefs() const { return beliefs_; }
  const std::string& session() const { return session_; }
  // Of acquires that wait, and whether every loss was acknowledged: else it may linger for a lease.
  bool Waits() const;
  bool acknowledged_all() const { return acknowledged_all_; }

  void OnEvent(uint64_t life, engine::Event event) override;
  void OnBroken(uint64_t life, uint64_t channel) override;

 private:
  struct Asked {
    enum class Kind { kAcquire, kRelease, kRenew, kPing, kFeed, kLostAck };
    Kind kind = Kind::kAcquire;
    uint64_t request = 0;
    SimDaemon* daemon = nullptr;
    uint64_t channel = 0;
    BootTime sent;
    Nanos sent_at = 0;  // true time
    absl::Duration wait;
    absl::Duration lease;
    absl::Duration feed;
    Mode mode = Mode::kExclusive;
    uint32_t limit = 0;
    std::vector<engine::KeyAndMode> keys;  // of an acquire of several
    uint64_t command = 0;                  // its command_id's number; 0: none
    std::string hold_id;
    bool was_stopped = false;
  };
  // The first grant that a command with an id was answered with.
  struct FirstGrant {
    uint64_t command = 0;
    KeyName name;
    std::string hold_id;
    std::string life;  // of the daemon
  };
  struct Missed {
    uint64_t life = 0;
    std::optional<engine::Event> event;  // nothing: the channel broke
    uint64_t channel = 0;
  };

  // client.cc
  BootTime Now() const { return clock_.Now(); }
  BootTime SessionEnd() const;
  SimDaemon* AnyDaemon();
  void Open();
  void OpenLater(Nanos delay);
  void Ping();
  void ArmPing();
  void Stop();
  void CutStream();
  void CheckTold();
  void Hear(engine::Event& event);
  void HearBroken(uint64_t channel);
  void OnClosed();
  void OnPong(const engine::Pong& pong);
  void OnLost(const engine::Lost& lost);
  void OnReply(const engine::Reply& reply);
  void OnError(const Asked& asked, const absl::Status& status);
  void OnAllGranted(const Asked& asked, const engine::AllGranted& all);
  void OnGrant(const Asked& asked, const engine::Grant& grant);
  bool IsFirstAnswer(const Asked& asked, const engine::Grant& grant);
  Belief* Find(const std::string& hold_id);
  void Forget(const std::string& hold_id);
  std::optional<Asked> TakeAsked(uint64_t request);
  template <typename... Args>
  void Complain(const Args&... what) {
    watcher_->OnComplaint(absl::StrCat("client ", plan_.number, ": ", what...));
  }

  // client_acts.cc
  void Later();
  void Act();
  void ActAtRandom();
  void ChooseMode(Mode& mode, uint32_t& limit);
  void TryAcquire();
  void TryAcquireAll();
  absl::Duration ChooseWait();
  // A command that may be sent again gets an id.
  bool ChooseCommandId(std::string& command_id, Asked& asked);
  void TryRelease(size_t at);
  void TryRenew();
  void FeedAll();
  void CancelOne();
  absl::Duration Times(int64_t low_ms, int64_t high_ms);
  void Ask(Asked asked, engine::Command command);
  // Asks, and after a while once more.
  void AskTwice(const Asked& asked, const engine::Command& command, Nanos within);

  World* const world_;
  const std::vector<SimDaemon*> daemons_;
  const ClientPlan plan_;
  int64_t* const acts_left_;
  Tally* const tally_;
  ClientWatcher* const watcher_;
  const DriftingClock clock_;
  bool alive_ = true;
  bool draining_ = false;
  bool acting_ = false;
  bool opened_ = false;
  bool stopped_ = false;
  bool silent_ = false;
  bool acknowledged_all_ = true;
  uint64_t life_ = 0;
  SimDaemon* daemon_ = nullptr;  // of the stream
  uint64_t channel_ = 0;
  std::string session_;
  BootTime last_answered_ping_;
  BootTime present_since_;  // neither stopped nor silent since then
  Nanos ping_at_ = INT64_MAX;
  uint64_t last_request_ = 0;
  uint64_t last_command_ = 0;
  std::vector<Asked> asked_;
  std::vector<Belief> beliefs_;
  std::vector<FirstGrant> first_grants_;
  std::vector<Missed> missed_;  // while stopped
};

}  // namespace holdfast::sim
