// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/daemon.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace holdfast::sim {
namespace {

// A message between client and daemon takes up to that long.
constexpr Nanos kLongestWay = 8 * kMillisecond;

void Complete(engine::Command& command, uint64_t channel, uint64_t request, BootTime received) {
  std::visit(
      [&](auto& body) {
        if constexpr (requires { body.head; }) {
          body.head = engine::CommandHead{{channel, request}, "sim", received};
        }
      },
      command);
}

}  // namespace

SimDaemon::SimDaemon(World* world, StoreServer* server, int number, double clock_rate,
                     const engine::EngineOptions* options, const StoreFaults* faults,
                     DaemonWatcher* watcher)
    : world_(world),
      server_(server),
      number_(number),
      options_(options),
      faults_(faults),
      watcher_(watcher),
      clock_(world, clock_rate, (2 + number) * 3600 * kSecond),
      last_channel_(static_cast<uint64_t>(number) << 32) {}

std::string SimDaemon::LifeName() const { return absl::StrFormat("d%d.%05d", number_, life_); }

void SimDaemon::Start() {
  life_++;
  ids_ = std::make_unique<SeededIds>(LifeName());
  engine_ = std::make_unique<engine::Engine>(*options_, ids_.get());
  const uint64_t life = life_;
  StoreLink::Listener listener;
  listener.reply = [this, life](StoreReply reply) {
    if (life != life_) return;
    Take([reply = std::move(reply)](engine::Engine& engine, BootTime now) mutable {
      engine.OnStoreReply(std::move(reply), now);
    });
  };
  listener.event = [this, life](StoreEvent event) {
    if (life != life_) return;
    Take([event = std::move(event)](engine::Engine& engine, BootTime now) {
      engine.OnStoreEvent(event, now);
    });
  };
  link_ = std::make_unique<StoreLink>(world_, server_, LifeName(), faults_, std::move(listener));
  link_->Connect();
}

void SimDaemon::Kill() {
  world_->Note("daemon ", number_, " is killed");
  life_++;
  stopped_ = false;
  missed_.clear();
  link_->Orphan();
  earlier_links_.push_back(std::move(link_));
  engine_.reset();
  armed_ = BootTime::Infinite();
  for (const auto& [id, channel] : std::exchange(channels_, {})) {
    world_->After(world_->Millis(0, 20),
                  [id = id, channel = channel] { channel.peer->OnBroken(channel.peer_life, id); });
  }
}

void SimDaemon::StopFor(Nanos time) {
  if (!alive() || stopped_) return;
  world_->Note("daemon ", number_, " is stopped for ", time / kMillisecond, " ms");
  stopped_ = true;
  link_->set_stopped(true);
  world_->After(time, [this, life = life_] {
    if (life == life_) GoOn();
  });
}

void SimDaemon::GoOn() {
  if (!stopped_) return;
  world_->Note("daemon ", number_, " goes on");
  stopped_ = false;
  went_on_at_ = world_->now();
  watcher_->OnGoesOn(LifeName());
  link_->set_stopped(false);
  for (Input& input : std::exchange(missed_, {})) Take(std::move(input));
  if (alive()) Take([](engine::Engine&, BootTime) {});
}

void SimDaemon::Take(Input input) {
  if (engine_ == nullptr) return;
  if (stopped_) return missed_.push_back(std::move(input));
  // Whoever hosts an engine looks at its timers first.
  const BootTime now = clock_.Now();
  engine_->Advance(now);
  input(*engine_, now);
  Turn();
  watcher_->AfterInput(*engine_);
}

void SimDaemon::Turn() {
  engine_->TakeOutput(&out_);
  if (!out_.requests.empty()) link_->Submit(std::exchange(out_.requests, {}));
  for (engine::Event& event : out_.events) Deliver(std::move(event));
  ArmTimer();
}

void SimDaemon::ArmTimer() {
  const BootTime next = engine_->NextDeadline();
  const BootTime now = clock_.Now();
  if (next.is_infinite() || (next >= armed_ && armed_ > now)) return;
  armed_ = next;
  const Nanos delay = clock_.TrueDelay(std::max<Nanos>(next.nanos() - now.nanos(), 0));
  world_->After(delay + world_->Millis(0, 2), [this, life = life_] {
    if (life != life_) return;
    armed_ = BootTime::Infinite();
    Take([](engine::Engine&, BootTime) {});
  });
}

uint64_t SimDaemon::OpenChannel(Peer* peer, uint64_t life) {
  const uint64_t id = ++last_channel_;
  channels_[id] = Channel{peer, life, world_->now(), world_->now()};
  return id;
}

void SimDaemon::Send(uint64_t channel, uint64_t request, engine::Command command) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  Nanos& last_in = it->second.last_in;
  last_in = std::max(last_in, world_->now() + world_->Between(0, kLongestWay));
  world_->After(last_in - world_->now(),
                [this, life = life_, channel, request, command = std::move(command)]() mutable {
                  if (life != life_) return;
                  Take([channel, request, command = std::move(command)](engine::Engine& engine,
                                                                        BootTime now) mutable {
                    Complete(command, channel, request, now);
                    engine.Handle(std::move(command), now);
                  });
                });
}

void SimDaemon::CloseChannel(uint64_t channel, engine::StreamEnd how) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  const Nanos at = std::max(it->second.last_in, world_->now() + world_->Between(0, kLongestWay));
  channels_.erase(it);
  world_->After(at - world_->now(), [this, life = life_, channel, how] {
    if (life != life_) return;
    Take([channel, how](engine::Engine& engine, BootTime now) {
      engine.Handle(engine::ChannelClosed{channel, how}, now);
    });
  });
}

void SimDaemon::Deliver(engine::Event event) {
  world_->Mix(event.channel << 8 | event.body.index());
  watcher_->OnEvent(event);
  const auto it = channels_.find(event.channel);
  if (it == channels_.end()) return;
  Nanos& last_out = it->second.last_out;
  last_out = std::max(last_out, world_->now() + world_->Between(0, kLongestWay));
  world_->After(last_out - world_->now(), [this, life = life_, event = std::move(event)]() mutable {
    if (life != life_) return;
    const auto to = channels_.find(event.channel);
    if (to == channels_.end()) return;
    to->second.peer->OnEvent(to->second.peer_life, std::move(event));
  });
}

}  // namespace holdfast::sim
