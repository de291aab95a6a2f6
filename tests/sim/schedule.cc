// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"

namespace holdfast::sim {
namespace {

// No schedule comes near it: one that does hangs in a loop.
constexpr uint64_t kMaxSteps = 1'000'000;

}  // namespace

Nanos Schedule::Times::settling() const {
  // A grace period or the lease of a hold that nobody gives back, what keeps the key after it, a
  // silent session before it, a client that is stopped; and what a lost wake-up costs.
  return 3 * max_lease() + 500 * kMillisecond * unit + release_delay + ttl + 3 * kSecond +
         ToNanos(limits::kWakeRetry);
}

Schedule::Schedule(uint64_t seed, Tally* tally, bool telling)
    : world_(seed, telling), tally_(tally), faulty_(world_.Chance(0.85)) {
  DrawTimes();
  DrawStore();
  DrawDaemons();
  DrawClients();
  if (faulty_) DrawFaults();
}

void Schedule::DrawTimes() {
  acts_left_ = world_.Chance(0.01) ? world_.Between(200, 600) : world_.Between(8, 50);
  const int64_t dice = world_.Between(0, 9);
  times_.unit = dice < 7 ? 1 : dice < 9 ? 5 : 40;
  times_.patient = times_.unit <= 5 && world_.Chance(0.5);
  times_.drift = times_.patient ? 0.0004 : 0.008;
  times_.gap = world_.OneOf(std::vector<Nanos>{4, 20, 80}) * kMillisecond * times_.unit;
  times_.ttl = world_.Millis(2000, 3000) * (1 + times_.unit / 8);
  options_.max_lease = ToDuration(times_.max_lease());
  options_.default_lease = ToDuration(times_.max_lease() * 3 / 4);
  options_.default_max_hold = absl::InfiniteDuration();
  if (world_.Chance(0.2)) {
    times_.release_delay = world_.Millis(20, 300) * times_.unit;
    options_.release_delays = {{"default", "", ToDuration(times_.release_delay)}};
  }
}

void Schedule::DrawStore() {
  faults_.delay_high = (world_.Chance(0.1) ? 60 : world_.Chance(0.5) ? 6 : 1) * kMillisecond;
  if (faulty_) {
    faults_.break_chance = world_.OneOf(std::vector<double>{0, 0.002, 0.03});
    faults_.repeat_chance = 0.02;
    faults_.lose_wake = world_.Chance(0.5) ? 0.1 : 0.5;
  }
  server_ = std::make_unique<StoreServer>(&world_, Drift(), times_.max_lease());
  promises_ = std::make_unique<Promises>(&world_, server_.get(), tally_);
  server_->set_watcher(promises_.get());
}

void Schedule::DrawDaemons() {
  const int64_t dice = world_.Between(0, 9);
  const int count = dice < 2 ? 1 : dice < 8 ? 2 : 3;
  for (int number = 0; number < count; ++number) {
    daemons_.push_back(std::make_unique<SimDaemon>(&world_, server_.get(), number, Drift(),
                                                   &options_, &faults_, promises_.get()));
    all_daemons_.push_back(daemons_.back().get());
    daemons_.back()->Start();
  }
}

void Schedule::DrawClients() {
  for (const char* key : {"a", "b", "c"}) {
    if (!keys_.empty() && world_.Chance(0.6)) break;
    keys_.push_back({"default", key});
  }
  const int64_t count = world_.Between(2, 6);
  const bool all_modes = world_.Chance(0.6);
  const bool fifo = world_.Chance(0.5);
  times_.acting = times_.gap * acts_left_ / count;
  for (int number = 0; number < count; ++number) {
    ClientPlan plan;
    plan.number = number;
    plan.bare = world_.Chance(0.25);
    plan.clock_rate = Drift();
    plan.ttl = times_.ttl;
    plan.unit = times_.unit;
    plan.gap_low = times_.gap / 10;
    plan.gap_high = times_.gap * 19 / 10;
    plan.keys = keys_;
    plan.all_modes = all_modes;
    plan.fifo = fifo;
    // A set is not had where asking for its keys takes longer than the shortest lease.
    plan.sets = keys_.size() > 1 && faults_.delay_high * 60 <= times_.max_lease();
    plan.patient = times_.patient;
    plan.drift = times_.drift;
    plan.owners = {"", absl::StrCat("owner-of-client-", number)};
    if (world_.Chance(0.3)) plan.owners.push_back("an-owner-of-several");
    clients_.push_back(std::make_unique<SimClient>(&world_, all_daemons_, std::move(plan),
                                                   &acts_left_, tally_, promises_.get()));
    promises_->AddClient(clients_.back().get());
    clients_.back()->Start();
  }
  if (world_.Chance(0.2)) {
    operator_ = std::make_unique<SimOperator>(&world_, all_daemons_, keys_, world_.Between(1, 4),
                                              times_.acting / 2);
    operator_->Start();
  }
}

void Schedule::DrawFaults() {
  for (SimDaemon* daemon : all_daemons_) DrawFaultsOf(*daemon);
  if (world_.Chance(0.2)) {
    OnceWhileActing([this] {
      tally_->restarts++;
      server_->RestartEmpty();
    });
  }
  if (world_.Chance(0.2)) {
    OnceWhileActing([this] {
      world_.Note("the store's wall clock jumps ahead");
      server_->JumpWallClock(world_.Millis(100, 3'600'000));
    });
  }
  if (world_.Chance(0.3)) {
    OnceWhileActing([this] {
      world_.OneOf(clients_)->Die(world_.Chance(0.5) ? engine::StreamEnd::kByClient
                                                     : engine::StreamEnd::kFellSilent);
    });
  }
}

void Schedule::DrawFaultsOf(SimDaemon& daemon) {
  if (world_.Chance(0.2)) {
    OnceWhileActing([this, &daemon] {
      tally_->kills++;
      daemon.Kill();
      world_.After(world_.Millis(1, 500), [&daemon] {
        if (!daemon.alive()) daemon.Start();
      });
    });
  }
  if (world_.Chance(0.15)) {
    OnceWhileActing([this, &daemon] {
      tally_->stops++;
      daemon.StopFor(world_.Millis(10, world_.Chance(0.5) ? 200 : 4000));
    });
  }
  if (world_.Chance(0.15)) {
    OnceWhileActing([this, &daemon] {
      tally_->breaks++;
      if (daemon.alive()) daemon.link().Break();
    });
  }
}

void Schedule::OnceWhileActing(World::Action action) {
  world_.After(world_.Between(0, times_.acting), [this, action = std::move(action)]() mutable {
    if (!settling_) action();
  });
}

std::string Schedule::Go() {
  Act();
  if (promises_->broken().empty()) Settle();
  if (promises_->broken().empty()) EndAll();
  tally_->steps += static_cast<int64_t>(world_.steps());
  if (operator_ != nullptr) tally_->forced += operator_->ended();
  if (promises_->broken().empty()) return "";
  return absl::StrCat(promises_->broken(), "\n", world_.Story());
}

void Schedule::Act() {
  // Clients that are all dead or shut out do not act.
  const Nanos end = 10 * times_.acting + 10 * kSecond;
  while (acts_left_ > 0 && promises_->broken().empty() && world_.Step(end)) {
    promises_->Look();
    if (world_.steps() > kMaxSteps) return promises_->Break("goes on for ever");
  }
}

void Schedule::Settle() {
  world_.Note("nothing fails any more");
  settling_ = true;
  faults_.break_chance = faults_.repeat_chance = faults_.lose_wake = 0;
  if (operator_ != nullptr) operator_->Stop();
  for (SimDaemon* daemon : all_daemons_) {
    if (!daemon->alive()) daemon->Start();
    daemon->GoOn();
  }
  for (const auto& client : clients_) client->Drain();
  const Nanos end = world_.now() + times_.settling();
  while (!AllDrained()) {
    if (!world_.Step(end) || world_.steps() > kMaxSteps) {
      return promises_->Break("somebody waits for ever: ", WhatIsLeft());
    }
    promises_->Look();
    if (!promises_->broken().empty()) return;
  }
}

void Schedule::EndAll() {
  const bool all_end = world_.Chance(0.5);
  for (const auto& client : clients_) {
    client->Die(all_end ? engine::StreamEnd::kByClient : engine::StreamEnd::kFellSilent);
  }
  const Nanos end = world_.now() + times_.settling();
  while (!NothingLeft()) {
    if (!world_.Step(end) || world_.steps() > kMaxSteps) {
      return promises_->Break("left at the end: ", WhatIsLeft());
    }
    promises_->Look();
    if (!promises_->broken().empty()) return;
  }
}

bool Schedule::AllDrained() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const auto& client) { return client->drained(); });
}

bool Schedule::NothingLeft() {
  for (SimDaemon* daemon : all_daemons_) {
    const engine::EngineStatus status = daemon->engine()->status();
    if (status.sessions + status.holds + status.waiters > 0) return false;
    if (daemon->link().subscriptions() > 0) return false;
  }
  server_->table().DropExpired(server_->Now(), 1000);
  server_->TellFreed();
  return server_->table().size() == 0;
}

std::string Schedule::WhatIsLeft() const {
  std::string what;
  for (const auto& client : clients_) {
    if (!client->drained()) absl::StrAppend(&what, "client ", client->number(), ", ");
  }
  for (SimDaemon* daemon : all_daemons_) {
    const engine::EngineStatus status = daemon->engine()->status();
    absl::StrAppend(&what, "daemon ", daemon->number(), " has ", status.sessions, " sessions, ",
                    status.holds, " holds, ", status.waiters, " waiters, ",
                    daemon->link().subscriptions(), " subscriptions; ");
  }
  return absl::StrCat(what, server_->table().size(), " keys in the store");
}

}  // namespace holdfast::sim
