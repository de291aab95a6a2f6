// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/store_link.h"

#include <algorithm>

#include "src/base/limits.h"

namespace holdfast::sim {

std::optional<int64_t> ServerTokens::Next() {
  const int64_t millis = clock_->Now().nanos() / 1'000'000;
  last_ = std::max(last_ + 1, millis * limits::kTokensPerMilli);
  return last_;
}

StoreServer::StoreServer(World* world, double clock_rate, absl::Duration max_lease)
    : world_(world),
      clock_(world, clock_rate, absl::Hours(1)),
      max_lease_(max_lease),
      tokens_(&clock_),
      table_(std::make_unique<memory::LockTable>(&tokens_)) {}

StoreReply StoreServer::Apply(const StoreRequest& request) {
  return table_->Apply(request, clock_.Now());
}

void StoreServer::RestartEmpty() {
  world_->Note("store restarts empty");
  tokens_.Forget();
  table_ = std::make_unique<memory::LockTable>(&tokens_);
  table_->SetGrace(clock_.Now() + max_lease_);
}

StoreLink::StoreLink(World* world, StoreServer* server, StoreFaults faults, Listener listener)
    : world_(world), server_(server), faults_(faults), listener_(std::move(listener)) {}

absl::Duration StoreLink::Delay() {
  return faults_.delay_low + (faults_.delay_high - faults_.delay_low) *
                                 (static_cast<double>(world_->Between(0, 1000)) / 1000);
}

void StoreLink::Connect() {
  const uint64_t connection = ++connection_;
  world_->After(Delay(), [this, connection] {
    if (connection != connection_) return;
    up_ = true;
    listener_.event(StoreEvent{StoreEvent::Kind::kUp, {}, {}, ""});
  });
}

void StoreLink::Submit(StoreRequest request) {
  if (const auto* unsubscribe = std::get_if<UnsubscribeOp>(&request.op)) {
    subscribed_.erase(unsubscribe->name);
    return;
  }
  if (!HasAnswer(request)) return;  // nobody watches here
  const uint64_t connection = connection_;
  if (!up_) {
    world_->After(absl::ZeroDuration(), [this, connection, id = request.id] {
      if (connection > connection_) return;
      listener_.reply(
          StoreReply{id, StoreFailure{StoreFailureKind::kUnreachable, false, "not connected"}});
    });
    return;
  }
  in_flight_.push_back(request.id);
  if (world_->Chance(faults_.break_chance)) {
    world_->After(Delay() * 2, [this, connection] {
      if (connection == connection_ && up_) Break();
    });
  }
  last_arrival_ = std::max(last_arrival_, world_->now() + Delay());
  world_->After(last_arrival_ - world_->now(),
                [this, connection, request = std::move(request)] { Arrive(connection, request); });
}

void StoreLink::Arrive(uint64_t connection, StoreRequest request) {
  // A new connection closes the old one at the server first, so nothing of it comes late.
  if (connection != connection_ || !up_) return;
  if (const auto* subscribe = std::get_if<SubscribeOp>(&request.op)) {
    subscribed_.insert(subscribe->name);
  }
  StoreReply reply = server_->Apply(request);
  for (const memory::LockTable::Freed& freed : server_->TakeFreed()) {
    if (!subscribed_.contains(freed.name) || world_->Chance(faults_.lose_wake)) continue;
    world_->After(Delay(), [this, connection, freed] {
      if (connection == connection_) {
        listener_.event(StoreEvent{StoreEvent::Kind::kWake, freed.name, {}, "", freed.daemon});
      }
    });
  }
  last_answer_ = std::max(last_answer_, world_->now() + Delay());
  world_->After(last_answer_ - world_->now(),
                [this, connection, reply] { Answer(connection, reply); });
}

void StoreLink::Answer(uint64_t connection, StoreReply reply) {
  if (connection != connection_ || !up_) return;
  std::erase(in_flight_, reply.id);
  const bool repeat = world_->Chance(faults_.repeat_chance);
  listener_.reply(reply);
  if (repeat && connection == connection_) listener_.reply(std::move(reply));
}

void StoreLink::Cut() {
  up_ = false;
  connection_++;
  in_flight_.clear();
  subscribed_.clear();
}

void StoreLink::Break() {
  world_->Note("store connection breaks");
  const std::deque<uint64_t> lost = in_flight_;
  Cut();
  for (const uint64_t id : lost) {
    listener_.reply(StoreReply{id, StoreFailure{StoreFailureKind::kUnreachable, true, "broken"}});
  }
  listener_.event(StoreEvent{StoreEvent::Kind::kDown, {}, {}, ""});
  const uint64_t connection = connection_;
  world_->After(world_->Millis(5, 400), [this, connection] {
    if (connection == connection_) Connect();
  });
}

}  // namespace holdfast::sim
