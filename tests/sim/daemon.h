// SPDX-License-Identifier: Apache-2.0
//
// A simulated daemon: an engine, its link to the store, and streams to clients
// that delay but keep their order. It can be killed and started again, and
// stopped for a while (as by SIGSTOP): then everything waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/engine.h"
#include "tests/sim/store_link.h"

namespace holdfast::sim {

// Sees what leaves an engine, and looks at its books after each input.
class DaemonWatcher {
 public:
  virtual ~DaemonWatcher() = default;
  virtual void OnEvent(const engine::Event& event) = 0;
  virtual void AfterInput(const engine::Engine& engine) = 0;
  // This life of a daemon was stopped for a while.
  virtual void OnGoesOn(const std::string& life) = 0;
};

class SimDaemon {
 public:
  // What a client's side of a channel hears.
  class Peer {
   public:
    virtual ~Peer() = default;
    virtual void OnEvent(uint64_t life, engine::Event event) = 0;
    // The daemon died.
    virtual void OnBroken(uint64_t life, uint64_t channel) = 0;
  };

  SimDaemon(World* world, StoreServer* server, int number, double clock_rate,
            const engine::EngineOptions* options, const StoreFaults* faults,
            DaemonWatcher* watcher);

  void Start();
  // kill -9: everything it knew is gone, every channel is closed.
  void Kill();
  void StopFor(Nanos time);
  void GoOn();
  bool alive() const { return engine_ != nullptr; }
  // Whether it was stopped at some time since then (true time).
  bool StoppedSince(Nanos then) const { return stopped_ || went_on_at_ >= then; }

  // `life` is the peer's own number, handed back with what it hears.
  uint64_t OpenChannel(Peer* peer, uint64_t life);
  // Arrives after a delay, in the channel's order. Its head is completed here.
  void Send(uint64_t channel, uint64_t request, engine::Command command);
  void CloseChannel(uint64_t channel, engine::StreamEnd how);

  engine::Engine* engine() { return engine_.get(); }
  StoreLink& link() { return *link_; }
  int number() const { return number_; }
  // What this life of it is called: all its ids begin so.
  std::string LifeName() const;

 private:
  struct Channel {
    Peer* peer;
    uint64_t peer_life;
    Nanos last_in;
    Nanos last_out;
  };
  using Input = absl::AnyInvocable<void(engine::Engine&, BootTime)>;

  void Take(Input input);
  void Turn();
  void ArmTimer();
  void Deliver(engine::Event event);

  World* const world_;
  StoreServer* const server_;
  const int number_;
  const engine::EngineOptions* const options_;
  const StoreFaults* const faults_;
  DaemonWatcher* const watcher_;
  const DriftingClock clock_;
  uint64_t life_ = 0;
  bool stopped_ = false;
  Nanos went_on_at_ = -1;
  std::vector<Input> missed_;  // while stopped
  std::unique_ptr<SeededIds> ids_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<StoreLink> link_;
  std::vector<std::unique_ptr<StoreLink>> earlier_links_;
  engine::Output out_;
  uint64_t last_channel_;  // unlike those of other daemons
  std::map<uint64_t, Channel> channels_;
  BootTime armed_ = BootTime::Infinite();
};

}  // namespace holdfast::sim
