// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/store_link.h"

#include <algorithm>
#include <utility>

#include "src/base/limits.h"

namespace holdfast::sim {
namespace {

const Nanos kBeat = ToNanos(limits::kDaemonBeat);

}  // namespace

std::optional<int64_t> ServerTokens::Next() {
  const int64_t millis = (clock_->Now().nanos() + ahead_) / kMillisecond;
  last_ = std::max(last_ + 1, millis * limits::kTokensPerMilli);
  return last_;
}

StoreServer::StoreServer(World* world, double clock_rate, Nanos max_lease)
    : world_(world),
      clock_(world, clock_rate, 3600 * kSecond),
      max_lease_(max_lease),
      tokens_(&clock_),
      table_(std::make_unique<memory::LockTable>(&tokens_)) {}

StoreReply StoreServer::Apply(const StoreRequest& request, bool followed) {
  if (watcher_ != nullptr) watcher_->BeforeRequest(request);
  StoreReply reply = table_->Apply(request, clock_.Now(), followed);
  if (watcher_ != nullptr) watcher_->AfterRequest(request, reply);
  return reply;
}

void StoreServer::TellFreed() {
  for (const memory::LockTable::Freed& freed : table_->TakeFreed()) {
    for (StoreLink* link : links_) link->Wake(freed);
  }
}

void StoreServer::Beat(const std::string& daemon) { table_->Beat(daemon, clock_.Now()); }

void StoreServer::RestartEmpty() {
  world_->Note("store restarts empty");
  restarted_at_ = world_->now();
  tokens_.Forget();
  table_ = std::make_unique<memory::LockTable>(&tokens_);
  table_->SetGrace(clock_.Now() + ToDuration(max_lease_));
  for (StoreLink* link : links_) link->Break();
}

StoreLink::StoreLink(World* world, StoreServer* server, std::string daemon,
                     const StoreFaults* faults, Listener listener)
    : world_(world),
      server_(server),
      daemon_(std::move(daemon)),
      faults_(faults),
      listener_(std::move(listener)) {
  server_->links_.push_back(this);
}

void StoreLink::Connect() {
  const uint64_t connection = ++connection_;
  world_->After(Delay() + kMillisecond, [this, connection] {
    if (connection != connection_ || orphaned_) return;
    if (stopped_) return Connect();  // who is stopped does not connect anew either
    up_ = true;
    listener_.event(StoreEvent{StoreEvent::Kind::kUp, {}, {}, ""});
    Beat(connection);
  });
}

void StoreLink::Beat(uint64_t connection) {
  if (connection != connection_ || orphaned_) return;
  if (!stopped_) server_->Beat(daemon_);
  world_->After(kBeat, [this, connection] { Beat(connection); });
}

void StoreLink::Submit(std::vector<StoreRequest> requests) {
  Batch batch;
  for (StoreRequest& request : requests) {
    if (!batch.empty() && !FollowsRelease(batch.back(), request)) Send(std::exchange(batch, {}));
    batch.push_back(std::move(request));
  }
  if (!batch.empty()) Send(std::move(batch));
}

void StoreLink::Send(Batch batch) {
  const uint64_t connection = connection_;
  if (!up_) {
    for (const StoreRequest& request : batch) {
      if (!HasAnswer(request)) continue;
      world_->After(0, [this, id = request.id] {
        if (orphaned_) return;
        listener_.reply(
            StoreReply{id, StoreFailure{StoreFailureKind::kUnreachable, false, "not connected"}});
      });
    }
    return;
  }
  for (const StoreRequest& request : batch) {
    if (HasAnswer(request)) in_flight_.push_back(request.id);
  }
  if (faults_->break_chance > 0 && world_->Chance(faults_->break_chance)) {
    world_->After(Delay() * 2, [this, connection] {
      if (connection == connection_ && up_) Break();
    });
  }
  last_arrival_ = std::max(last_arrival_, world_->now() + Delay());
  world_->After(last_arrival_ - world_->now(),
                [this, connection, batch = std::move(batch)] { Arrive(connection, batch); });
}

void StoreLink::Arrive(uint64_t connection, const Batch& batch) {
  // A new connection closes the old one at the server first, so nothing of it comes late.
  if (connection != connection_ || !up_) return;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (const auto* subscribe = std::get_if<SubscribeOp>(&batch[i].op)) {
      subscribed_.insert(subscribe->name);
    }
    if (const auto* unsubscribe = std::get_if<UnsubscribeOp>(&batch[i].op)) {
      subscribed_.erase(unsubscribe->name);
    }
    if (!HasAnswer(batch[i])) continue;  // nobody watches here
    SendAnswer(connection, server_->Apply(batch[i], i + 1 < batch.size()));
  }
  server_->TellFreed();
}

void StoreLink::Wake(const memory::LockTable::Freed& freed) {
  if (orphaned_ || !up_ || !subscribed_.contains(freed.name)) return;
  if (faults_->lose_wake > 0 && world_->Chance(faults_->lose_wake)) return;
  world_->After(Delay(), [this, connection = connection_, freed] {
    if (connection != connection_ || orphaned_) return;
    listener_.event(StoreEvent{StoreEvent::Kind::kWake, freed.name, {}, "", freed.daemon});
  });
}

void StoreLink::SendAnswer(uint64_t connection, StoreReply reply) {
  last_answer_ = std::max(last_answer_, world_->now() + Delay());
  world_->After(last_answer_ - world_->now(),
                [this, connection, reply = std::move(reply)]() mutable {
                  Answer(connection, std::move(reply));
                });
}

void StoreLink::Answer(uint64_t connection, StoreReply reply) {
  if (connection != connection_ || !up_ || orphaned_) return;
  std::erase(in_flight_, reply.id);
  const bool repeat = faults_->repeat_chance > 0 && world_->Chance(faults_->repeat_chance);
  if (!repeat) return listener_.reply(std::move(reply));
  listener_.reply(reply);
  if (connection == connection_ && !orphaned_) listener_.reply(std::move(reply));
}

void StoreLink::Orphan() {
  orphaned_ = true;
  // Its last words may be lost on the way.
  if (world_->Chance(0.5)) connection_++;
}

void StoreLink::Break() {
  if (!up_) return;
  up_ = false;
  connection_++;
  if (orphaned_) return;
  world_->Note("store connection of ", daemon_, " breaks");
  subscribed_.clear();
  for (const uint64_t id : std::exchange(in_flight_, {})) {
    listener_.reply(StoreReply{id, StoreFailure{StoreFailureKind::kUnreachable, true, "broken"}});
  }
  listener_.event(StoreEvent{StoreEvent::Kind::kDown, {}, {}, ""});
  const uint64_t connection = connection_;
  world_->After(world_->Millis(5, 400), [this, connection] {
    if (connection == connection_ && !orphaned_) Connect();
  });
}

}  // namespace holdfast::sim
