// SPDX-License-Identifier: Apache-2.0
//
// A simulated daemon: an engine, its link to the store, and streams to clients
// that delay but keep their order. It can be killed and started again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "src/engine/engine.h"
#include "tests/sim/store_link.h"

namespace holdfast::sim {

class SimDaemon {
 public:
  // What a client's side of a channel hears. `closed`: the daemon died.
  struct Peer {
    std::function<void(engine::Event)> event;
    std::function<void()> closed;
  };

  SimDaemon(World* world, StoreServer* server, engine::EngineOptions options, StoreFaults faults);

  void Start();
  // kill -9: everything it knew is gone, every channel is closed.
  void Kill();
  bool alive() const { return engine_ != nullptr; }

  uint64_t OpenChannel(Peer peer);
  // The message arrives after a delay, in the channel's order.
  void Send(uint64_t channel, std::function<engine::Command(BootTime received)> make);
  void CloseChannel(uint64_t channel, engine::StreamEnd how);

  engine::Engine* engine() { return engine_.get(); }
  StoreLink& link() { return *link_; }
  // Sees each event as it leaves the engine.
  void set_on_deliver(std::function<void(const engine::Event&)> check) {
    on_deliver_ = std::move(check);
  }
  // Sets what the checks look at after each input.
  void set_after_input(std::function<void()> check) { after_input_ = std::move(check); }

 private:
  struct Channel {
    Peer peer;
    absl::Duration last_in;
    absl::Duration last_out;
  };

  void Turn();
  void ArmTimer();
  void Deliver(engine::Event event);
  void Input(const std::function<void(engine::Engine&)>& input);

  World* world_;
  StoreServer* server_;
  engine::EngineOptions options_;
  StoreFaults faults_;
  uint64_t life_ = 0;
  std::unique_ptr<SeededIds> ids_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<StoreLink> link_;
  std::vector<std::unique_ptr<StoreLink>> earlier_links_;  // what they had under way still comes
  DriftingClock clock_;
  uint64_t last_channel_ = 0;
  std::map<uint64_t, Channel> channels_;
  BootTime armed_ = BootTime::Infinite();
  std::function<void()> after_input_;
  std::function<void(const engine::Event&)> on_deliver_;
};

}  // namespace holdfast::sim
