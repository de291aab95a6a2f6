// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/client.h"

#include <algorithm>
#include <utility>

#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::sim {
namespace {

// An answer may be late by the way there and back and the daemon's timer.
constexpr absl::Duration kSlack = absl::Milliseconds(40);
// Of two clocks, as limits.h has it.
constexpr double kReckonedDrift = 0.001;

}  // namespace

SimClient::SimClient(World* world, std::vector<SimDaemon*> daemons, ClientPlan plan,
                     int64_t* acts_left, Tally* tally, ClientWatcher* watcher)
    : world_(world),
      daemons_(std::move(daemons)),
      plan_(std::move(plan)),
      acts_left_(acts_left),
      tally_(tally),
      watcher_(watcher),
      clock_(world, plan_.clock_rate, 600 * kSecond * (1 + plan_.number)) {}

void SimClient::Start() {
  if (!plan_.bare) Open();
  Later();
}

void SimClient::Drain() {
  draining_ = true;
  silent_ = false;
  present_since_ = Now();
  if (!acting_) Later();
}

bool SimClient::Waits() const {
  return std::any_of(asked_.begin(), asked_.end(),
                     [](const Asked& asked) { return asked.kind == Asked::Kind::kAcquire; });
}

bool SimClient::drained() const {
  if (!alive_) return true;
  const bool owes = std::any_of(asked_.begin(), asked_.end(), [](const Asked& asked) {
    return asked.kind != Asked::Kind::kPing;
  });
  return draining_ && !stopped_ && !owes && beliefs_.empty();
}

void SimClient::Die(engine::StreamEnd how) {
  if (!alive_) return;
  world_->Note("client ", plan_.number, how == engine::StreamEnd::kByClient ? " ends" : " is gone");
  alive_ = false;
  beliefs_.clear();
  if (channel_ != 0) daemon_->CloseChannel(channel_, how);
  for (const Asked& asked : asked_) {
    if (plan_.bare) asked.daemon->CloseChannel(asked.channel, how);
  }
}

BootTime SimClient::SessionEnd() const {
  if (plan_.bare) return BootTime::Infinite();
  const absl::Duration ttl = ToDuration(plan_.ttl);
  return last_answered_ping_ + (ttl - SafetyMargin(ttl));
}

bool SimClient::Relies(const Belief& belief) const {
  if (!alive_ || belief.count == 0) return false;
  return Now() < std::min({belief.valid_until, belief.hard_until, SessionEnd()});
}

SimDaemon* SimClient::AnyDaemon() {
  SimDaemon* home = daemons_[static_cast<size_t>(plan_.number) % daemons_.size()];
  if (home->alive() && world_->Chance(0.8)) return home;
  SimDaemon* other = world_->OneOf(daemons_);
  return other->alive() ? other : home->alive() ? home : nullptr;
}

void SimClient::OpenLater(Nanos delay) {
  world_->After(delay, [this] {
    if (alive_ && channel_ == 0) Open();
  });
}

void SimClient::Open() {
  life_++;
  opened_ = false;
  beliefs_.clear();
  asked_.clear();
  daemon_ = AnyDaemon();
  if (daemon_ == nullptr) return OpenLater(world_->Millis(20, 60));
  channel_ = daemon_->OpenChannel(this, life_);
  last_answered_ping_ = Now();  // the sending of `open`
  engine::OpenSession open;
  open.ttl = ToDuration(plan_.ttl);
  daemon_->Send(channel_, 0, std::move(open));
}

void SimClient::OnClosed() {
  life_++;  // what still comes of the old stream is nobody's
  opened_ = false;
  beliefs_.clear();
  asked_.clear();
  channel_ = 0;
  OpenLater(world_->Millis(1, 50));
}

void SimClient::CutStream() {
  world_->Note("client ", plan_.number, " ends its stream");
  // Where the connection broke, the client cannot know whether the daemon noticed.
  const bool broke = world_->Chance(0.3);
  daemon_->CloseChannel(channel_,
                        broke ? engine::StreamEnd::kFellSilent : engine::StreamEnd::kByClient);
  if (!broke) beliefs_.clear();
  life_++;
  channel_ = 0;
  opened_ = false;
  asked_.clear();
  OpenLater(world_->Millis(1, 300));
}

void SimClient::ArmPing() {
  if (!opened_) return;
  absl::Duration every = ToDuration(plan_.ttl);
  for (const Belief& belief : beliefs_) every = std::min(every, belief.lease);
  const Nanos at = world_->now() + clock_.TrueDelay(ToNanos(every) / 3);
  if (at >= ping_at_) return;
  ping_at_ = at;
  world_->After(at - world_->now(), [this, at] {
    if (ping_at_ != at) return;
    ping_at_ = INT64_MAX;
    if (alive_) Ping();
  });
}

void SimClient::Ping() {
  if (opened_ && !stopped_ && !silent_) {
    Asked asked;
    asked.kind = Asked::Kind::kPing;
    Ask(std::move(asked), engine::Ping{});
    watcher_->OnSessionSpeaks(session_, plan_.ttl);
  }
  ArmPing();
}

void SimClient::Stop() {
  stopped_ = true;
  for (Asked& asked : asked_) asked.was_stopped = true;
  world_->Note("client ", plan_.number, " is stopped");
  world_->After(world_->Millis(10, 1500), [this] {
    if (!alive_) return;
    stopped_ = false;
    present_since_ = Now();
    world_->Note("client ", plan_.number, " goes on");
    for (Missed& missed : std::exchange(missed_, {})) {
      if (!plan_.bare && missed.life != life_) continue;
      missed.event.has_value() ? Hear(*missed.event) : HearBroken(missed.channel);
    }
  });
}

void SimClient::OnEvent(uint64_t life, engine::Event event) {
  if (!alive_ || (!plan_.bare && life != life_)) return;
  if (stopped_) return missed_.push_back(Missed{life, std::move(event), 0});
  Hear(event);
}

void SimClient::OnBroken(uint64_t life, uint64_t channel) {
  if (!alive_ || (!plan_.bare && life != life_)) return;
  if (stopped_) return missed_.push_back(Missed{life, std::nullopt, channel});
  HearBroken(channel);
}

void SimClient::HearBroken(uint64_t channel) {
  if (!plan_.bare) return OnClosed();
  std::erase_if(asked_, [&](const Asked& asked) { return asked.channel == channel; });
}

void SimClient::Hear(engine::Event& event) {
  if (const auto* reply = std::get_if<engine::Reply>(&event.body)) {
    OnReply(*reply);
  } else if (const auto* pong = std::get_if<engine::Pong>(&event.body)) {
    OnPong(*pong);
  } else if (const auto* lost = std::get_if<engine::Lost>(&event.body)) {
    OnLost(*lost);
  } else if (const auto* opened = std::get_if<engine::SessionOpened>(&event.body)) {
    opened_ = true;
    silent_ = false;
    present_since_ = Now();
    session_ = opened->session_id;
    watcher_->OnSessionSpeaks(session_, plan_.ttl);
    Ping();
  } else if (std::holds_alternative<engine::EndStream>(event.body)) {
    OnClosed();
  }
}

void SimClient::OnPong(const engine::Pong& pong) {
  const std::optional<Asked> ping = TakeAsked(pong.request_id);
  if (!ping.has_value()) return Complain("a pong for no ping");
  last_answered_ping_ = std::max(last_answered_ping_, ping->sent);
  watcher_->OnBeliefGrown();
  if (!pong.valid_for.has_value()) return;
  for (Belief& belief : beliefs_) {
    belief.valid_until =
        std::max(belief.valid_until, ping->sent + (*pong.valid_for - SafetyMargin(belief.lease)));
  }
}

void SimClient::OnLost(const engine::Lost& lost) {
  tally_->losses++;
  Forget(lost.hold_id);
  if (!draining_ && world_->Chance(0.3)) {
    acknowledged_all_ = false;
    return;
  }
  Asked asked;
  asked.kind = Asked::Kind::kLostAck;
  Ask(std::move(asked), engine::LostAck{{}, lost.hold_id});
}

std::optional<SimClient::Asked> SimClient::TakeAsked(uint64_t request) {
  const auto it = std::find_if(asked_.begin(), asked_.end(),
                               [&](const Asked& asked) { return asked.request == request; });
  if (it == asked_.end()) return std::nullopt;
  Asked asked = std::move(*it);
  asked_.erase(it);
  return asked;
}

void SimClient::OnReply(const engine::Reply& reply) {
  const std::optional<Asked> found = TakeAsked(reply.request_id);
  if (!found.has_value()) {
    if (!plan_.bare) Complain("an answer without a question: ", reply.request_id);
    return;
  }
  const Asked& asked = *found;
  if (plan_.bare) asked.daemon->CloseChannel(asked.channel, engine::StreamEnd::kByClient);
  const absl::Duration took = Now() - asked.sent;
  const bool timely = !asked.was_stopped && !asked.daemon->StoppedSince(asked.sent_at);
  if (asked.kind == Asked::Kind::kAcquire && asked.wait > absl::ZeroDuration() && timely &&
      took > asked.wait * 1.02 + kSlack) {
    Complain("an answer after ", absl::FormatDuration(took), " to a wait of ",
             absl::FormatDuration(asked.wait));
  }
  if (const auto* grant = std::get_if<engine::Grant>(&reply.result)) {
    OnGrant(asked, *grant);
  } else if (const auto* all = std::get_if<engine::AllGranted>(&reply.result)) {
    OnAllGranted(asked, *all);
  } else if (const auto* refused = std::get_if<engine::NotAcquired>(&reply.result)) {
    tally_->deadlocks += refused->reason == engine::NotAcquiredReason::kDeadlock;
    refused->reason == engine::NotAcquiredReason::kBusy ? tally_->busy++ : tally_->expired_waits++;
  } else if (std::holds_alternative<engine::NoneGranted>(reply.result)) {
    tally_->sets_refused++;
  } else if (const auto* renewed = std::get_if<engine::RenewAnswer>(&reply.result)) {
    if (Belief* belief = Find(asked.hold_id)) {
      belief->valid_until =
          std::max(belief->valid_until,
                   asked.sent + (renewed->waited + renewed->lease - SafetyMargin(belief->lease)));
      watcher_->OnBeliefGrown();
    }
  } else if (const auto* status = std::get_if<absl::Status>(&reply.result)) {
    OnError(asked, *status);
  }
}

void SimClient::OnError(const Asked& asked, const absl::Status& status) {
  tally_->errors++;
  switch (ReasonOf(status)) {
    case Reason::kUnspecified:
    case Reason::kStoreError:
    case Reason::kInvalidField:
    case Reason::kCommandMismatch:
    case Reason::kUnsupported:
      Complain("unexpected error: ", std::string(status.message()));
      break;
    case Reason::kUpgradeRefused:
    case Reason::kModeMismatch:
    case Reason::kLimitMismatch:
      tally_->mode_refusals++;
      break;
    default:
      break;
  }
  if (asked.kind == Asked::Kind::kRenew) Forget(asked.hold_id);
}

void SimClient::OnAllGranted(const Asked& asked, const engine::AllGranted& all) {
  if (all.grants.size() != asked.keys.size()) return Complain("not a grant for each key");
  tally_->sets++;
  for (size_t i = 0; i < all.grants.size(); ++i) {
    if (all.grants[i].name.key != asked.keys[i].key) Complain("grants out of order");
    Asked one = asked;
    one.mode = asked.keys[i].mode;
    one.limit = asked.keys[i].limit;
    OnGrant(one, all.grants[i]);
  }
}

bool SimClient::IsFirstAnswer(const Asked& asked, const engine::Grant& grant) {
  if (asked.command == 0) return true;
  const auto first = std::find_if(first_grants_.begin(), first_grants_.end(), [&](const auto& f) {
    return f.command == asked.command && f.name == grant.name;
  });
  if (first == first_grants_.end()) {
    first_grants_.push_back(
        FirstGrant{asked.command, grant.name, grant.hold_id, asked.daemon->LifeName()});
    return true;
  }
  if (first->hold_id != grant.hold_id && first->life == asked.daemon->LifeName()) {
    Complain("a command was run twice: ", first->hold_id, " and ", grant.hold_id);
  }
  return false;
}

void SimClient::OnGrant(const Asked& asked, const engine::Grant& grant) {
  // A clock that drifts by more than daemons reckon with knows that.
  const double drift = std::max(0.0, 2 * plan_.drift - kReckonedDrift);
  const BootTime anchor = asked.sent + grant.waited * (1 - drift);
  const BootTime valid_until = anchor + (grant.lease - SafetyMargin(asked.lease));
  Belief* belief = Find(grant.hold_id);
  watcher_->OnBeliefGrown();
  if (!IsFirstAnswer(asked, grant)) {
    world_->Note("client ", plan_.number, " hears again of ", grant.hold_id);
    if (belief != nullptr) belief->valid_until = std::max(belief->valid_until, valid_until);
    return;
  }
  tally_->grants++;
  tally_->long_waits += grant.waited > limits::kWakeRetry;
  tally_->reads += grant.mode == Mode::kShared;
  tally_->permits += grant.mode == Mode::kPermit;
  if (grant.mode != asked.mode &&
      (asked.mode != Mode::kShared || grant.mode != Mode::kExclusive || grant.hold_count == 1)) {
    Complain("a grant in another mode");
  }
  if (belief == nullptr) {
    Belief& made = beliefs_.emplace_back();
    made.name = grant.name;
    made.owner = grant.owner;
    made.hold_id = grant.hold_id;
    made.session = grant.session_id;
    made.mode = grant.mode;
    made.limit = asked.limit;
    made.token = grant.token;
    made.lease = asked.lease;
    made.feed = asked.feed;
    made.asked_at = asked.sent_at;
    belief = &made;
  } else {
    tally_->reentries++;
    belief->lease = std::max(belief->lease, asked.lease);
    if (belief->token != grant.token) Complain("a re-entry with another token");
    if (belief->mode != grant.mode) Complain("a re-entry in another mode");
  }
  belief->count++;
  belief->valid_until = std::max(belief->valid_until, valid_until);
  if (grant.max_hold_remaining.has_value()) {
    belief->hard_until = std::min(belief->hard_until,
                                  anchor + (*grant.max_hold_remaining - SafetyMargin(asked.lease)));
  }
  if (!plan_.bare) ArmPing();
  if (draining_ && !acting_) Later();
}

Belief* SimClient::Find(const std::string& hold_id) {
  const auto it = std::find_if(beliefs_.begin(), beliefs_.end(),
                               [&](const Belief& belief) { return belief.hold_id == hold_id; });
  return it == beliefs_.end() ? nullptr : &*it;
}

void SimClient::Forget(const std::string& hold_id) {
  std::erase_if(beliefs_, [&](const Belief& belief) { return belief.hold_id == hold_id; });
}

// A session's client that is there hears of a loss not much later than it could compute it.
void SimClient::CheckTold() {
  if (plan_.bare || !opened_ || silent_ || stopped_) return;
  const BootTime now = Now();
  for (const Belief& belief : beliefs_) {
    const BootTime end = std::min({belief.valid_until, belief.hard_until, SessionEnd()});
    const BootTime since = std::max(end, present_since_);
    const absl::Duration patience = 2 * belief.lease + absl::Milliseconds(500);
    if (now - since <= patience || daemon_->StoppedSince(world_->now() - 2 * ToNanos(patience))) {
      continue;
    }
    Complain("was not told that ", belief.hold_id, " is lost");
  }
}

}  // namespace holdfast::sim
