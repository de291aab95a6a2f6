// SPDX-License-Identifier: Apache-2.0
//
// What must be true in every schedule, whatever fails. Looked at after each step, over all daemons:
//   * no two owners believe, each by its own clock, that they hold one key, except readers
//     together, and as many permits as their limit says;
//   * what a client believes to hold stands in the store, as often as it believes, with its token;
//   * tokens grow in grant order, in the store and as the daemons tell them; readers of one phase
//     share one, each permit has its own;
//   * no request to the store changes a hold that it does not name;
//   * a command with an id is counted once; nothing is renewed for a client that is silent for
//     longer than its ttl;
//   * each engine's books agree with each other.
// What is true only of a whole schedule is in schedule.cc, what a client sees for itself (waits
// that end in time, losses that are told, answers that fit) in client.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/client.h"
#include "tests/sim/daemon.h"
#include "tests/sim/store_link.h"

namespace holdfast::sim {

class Promises final : public StoreWatcher, public DaemonWatcher, public ClientWatcher {
 public:
  Promises(World* world, StoreServer* server, Tally* tally)
      : world_(world), server_(server), tally_(tally) {}

  void AddClient(const SimClient* client) { clients_.push_back(client); }
  // After each step.
  void Look() {
    if (grown_) CompareBeliefs();
  }
  // What was broken first; empty: nothing.
  const std::string& broken() const { return broken_; }
  template <typename... Args>
  void Break(const Args&... what) {
    if (broken_.empty()) broken_ = absl::StrCat(what...);
  }

  void BeforeRequest(const StoreRequest& request) override;
  void AfterRequest(const StoreRequest& request, const StoreReply& reply) override;
  void OnEvent(const engine::Event& event) override;
  void AfterInput(const engine::Engine& engine) override;
  void OnGoesOn(const std::string& life) override;
  void OnSessionSpeaks(const std::string& session, Nanos ttl) override;
  void OnBeliefGrown() override { grown_ = true; }
  void OnComplaint(const std::string& what) override { Break(what); }

 private:
  // A hold that the request at hand has no business with, as it stood before.
  struct Bystander {
    size_t hold = 0;  // a hash of its id
    uint32_t count = 0;
    BootTime deadline;
  };
  struct KeyPast {
    KeyName name;
    int64_t granted_token = 0;  // the newest that the store gave out
    int64_t told_token = 0;     // the newest that a daemon told
    std::string told_owner;
    Mode told_mode = Mode::kExclusive;
    std::string told_by;               // the daemon
    std::vector<int64_t> told_before;  // all of them
  };
  // Where a command was counted.
  struct Counted {
    std::string hold_id;
    std::string life;  // of the daemon that asked for it
    int times = 0;
  };

  struct Spoken {
    Nanos at = 0;
    Nanos ttl = 0;
  };

  KeyPast& PastOf(const KeyName& name);
  void CompareBeliefs();
  bool CompareWithOthers(const Belief& belief);
  void CompareWithStore(const Belief& belief);
  void CheckRecord(const KeyName& name, const memory::KeyRecord& record);
  void CheckBystanders(const memory::KeyRecord* record);
  void CheckNewToken(const AcquireOp& op, const Granted& granted);
  void CountCommand(const AcquireOp& op, const Granted& granted);
  void UncountCommand(const ReleaseOp& op);
  void CheckRenewal(const RenewOp& op);
  void CheckTold(const engine::Grant& grant, bool of_set);

  World* const world_;
  StoreServer* const server_;
  Tally* const tally_;
  std::vector<const SimClient*> clients_;
  std::string broken_;
  bool grown_ = false;
  std::vector<const Belief*> believed_;  // one for each owner and key; kept for its memory
  std::vector<KeyPast> past_;
  std::vector<Bystander> bystanders_;
  uint32_t named_before_ = 0;               // the count of the hold that the request at hand names
  bool remembered_ = false;                 // that hold knows the op id of the acquire at hand
  std::map<int64_t, std::string> permits_;  // who was given which number
  std::map<std::pair<std::string, std::string>, Counted> counted_;  // by op id and key
  std::map<std::string, Spoken> spoken_;                            // by session
  std::map<std::string, Nanos> went_on_;                            // by a daemon's life
};

}  // namespace holdfast::sim
