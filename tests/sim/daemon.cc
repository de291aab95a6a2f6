// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/daemon.h"

#include "absl/strings/str_cat.h"

namespace holdfast::sim {

SimDaemon::SimDaemon(World* world, StoreServer* server, engine::EngineOptions options,
                     StoreFaults faults)
    : world_(world),
      server_(server),
      options_(options),
      faults_(faults),
      clock_(world, 1.0, absl::Hours(2)) {}

void SimDaemon::Start() {
  life_++;
  ids_ = std::make_unique<SeededIds>(absl::StrCat("daemon", life_));
  engine_ = std::make_unique<engine::Engine>(options_, ids_.get());
  const uint64_t life = life_;
  if (link_ != nullptr) earlier_links_.push_back(std::move(link_));
  link_ = std::make_unique<StoreLink>(
      world_, server_, faults_,
      StoreLink::Listener{[this, life](StoreReply reply) {
                            if (life != life_) return;
                            Input([&](engine::Engine& engine) {
                              engine.OnStoreReply(StoreReply(reply), clock_.Now());
                            });
                          },
                          [this, life](StoreEvent event) {
                            if (life != life_) return;
                            Input([&](engine::Engine& engine) {
                              engine.OnStoreEvent(event, clock_.Now());
                            });
                          }});
  link_->Connect();
}

void SimDaemon::Kill() {
  world_->Note("daemon killed");
  life_++;
  link_->Cut();
  engine_.reset();
  armed_ = BootTime::Infinite();
  for (auto& [id, channel] : channels_) {
    world_->After(world_->Millis(0, 20), [closed = channel.peer.closed] { closed(); });
  }
  channels_.clear();
}

void SimDaemon::Input(const std::function<void(engine::Engine&)>& input) {
  if (engine_ == nullptr) return;
  // Whoever hosts an engine looks at its timers first.
  engine_->Advance(clock_.Now());
  input(*engine_);
  Turn();
  if (after_input_) after_input_();
}

void SimDaemon::Turn() {
  engine::Output out = engine_->TakeOutput();
  for (StoreRequest& request : out.requests) link_->Submit(std::move(request));
  for (engine::Event& event : out.events) Deliver(std::move(event));
  ArmTimer();
}

void SimDaemon::ArmTimer() {
  const BootTime next = engine_->NextDeadline();
  if (next.is_infinite() || (next >= armed_ && armed_ > clock_.Now())) return;
  armed_ = next;
  const uint64_t life = life_;
  world_->After(clock_.TrueDelay(next - clock_.Now()) + world_->Millis(0, 2), [this, life] {
    if (life != life_) return;
    armed_ = BootTime::Infinite();
    Input([](engine::Engine&) {});
  });
}

uint64_t SimDaemon::OpenChannel(Peer peer) {
  const uint64_t id = ++last_channel_;
  channels_[id] = Channel{std::move(peer), world_->now(), world_->now()};
  return id;
}

void SimDaemon::Send(uint64_t channel, std::function<engine::Command(BootTime)> make) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  it->second.last_in = std::max(it->second.last_in, world_->now() + world_->Millis(0, 8));
  world_->After(it->second.last_in - world_->now(), [this, life = life_, make = std::move(make)] {
    if (life != life_) return;
    const BootTime received = clock_.Now();
    Input([&](engine::Engine& engine) { engine.Handle(make(received), clock_.Now()); });
  });
}

void SimDaemon::CloseChannel(uint64_t channel, engine::StreamEnd how) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  const absl::Duration at = std::max(it->second.last_in, world_->now() + world_->Millis(0, 8));
  channels_.erase(it);
  world_->After(at - world_->now(), [this, life = life_, channel, how] {
    if (life != life_) return;
    Input([&](engine::Engine& engine) {
      engine.Handle(engine::ChannelClosed{channel, how}, clock_.Now());
    });
  });
}

void SimDaemon::Deliver(engine::Event event) {
  world_->Mix(event.channel << 8 | event.body.index());
  if (on_deliver_) on_deliver_(event);
  const auto it = channels_.find(event.channel);
  if (it == channels_.end()) return;
  it->second.last_out = std::max(it->second.last_out, world_->now() + world_->Millis(0, 8));
  world_->After(it->second.last_out - world_->now(),
                [this, life = life_, channel = event.channel, event = std::move(event)] {
                  if (life != life_) return;
                  const auto to = channels_.find(channel);
                  if (to != channels_.end()) to->second.peer.event(event);
                });
}

}  // namespace holdfast::sim
