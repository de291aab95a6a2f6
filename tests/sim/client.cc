// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/client.h"

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::sim {
namespace {

// An answer may be late by the way there and back and the daemon's timer.
constexpr absl::Duration kSlack = absl::Milliseconds(40);

}  // namespace

SimClient::SimClient(World* world, SimDaemon* daemon, ClientPlan plan, Tally* tally)
    : world_(world),
      daemon_(daemon),
      plan_(std::move(plan)),
      tally_(tally),
      clock_(world, plan_.clock_rate, absl::Minutes(10)) {}

void SimClient::Complain(std::string what) {
  if (!complaint_.has_value()) complaint_ = absl::StrCat("client ", plan_.number, ": ", what);
}

void SimClient::Start() {
  Open();
  Act();
}

BootTime SimClient::SessionEnd() const {
  if (plan_.bare) return BootTime::Infinite();
  return last_answered_ping_ + plan_.ttl - SafetyMargin(plan_.ttl);
}

std::vector<const Belief*> SimClient::Beliefs() const {
  std::vector<const Belief*> held;
  if (!alive_) return held;
  const BootTime now = Now();
  for (const auto& [id, belief] : beliefs_) {
    const BootTime end = std::min({belief.valid_until, belief.hard_until, SessionEnd()});
    if (belief.count > 0 && now < end) held.push_back(&belief);
  }
  return held;
}

void SimClient::Open() {
  if (plan_.bare) return;
  life_++;
  opened_ = false;
  beliefs_.clear();
  asked_.clear();
  if (!daemon_->alive()) {
    world_->After(world_->Millis(20, 60), [this] {
      if (alive_) Open();
    });
    return;
  }
  const uint64_t life = life_;
  channel_ = daemon_->OpenChannel({[this, life](engine::Event event) {
                                     if (life != life_ || !alive_) return;
                                     if (stopped_) {
                                       while_stopped_.push_back([this, life, event] {
                                         if (life == life_) OnEvent(event.channel, event);
                                       });
                                     } else {
                                       OnEvent(event.channel, event);
                                     }
                                   },
                                   [this, life] {
                                     if (life != life_ || !alive_) return;
                                     if (stopped_) {
                                       while_stopped_.push_back([this, life] {
                                         if (life == life_) OnClosed();
                                       });
                                     } else {
                                       OnClosed();
                                     }
                                   }});
  last_answered_ping_ = Now();  // the sending of `open`
  const uint64_t channel = channel_;
  daemon_->Send(channel_, [this, channel](BootTime received) {
    engine::OpenSession open;
    open.head = {{channel, 0}, "sim", received};
    open.ttl = plan_.ttl;
    return engine::Command(std::move(open));
  });
}

void SimClient::OnClosed() {
  life_++;  // what still comes of the old stream is nobody's
  beliefs_.clear();
  asked_.clear();
  channel_ = 0;
  world_->After(world_->Millis(1, 50), [this] {
    if (alive_) Open();
  });
}

void SimClient::Ping() {
  if (!alive_ || plan_.bare) return;
  const uint64_t life = life_;
  if (opened_ && !stopped_ && !silent_) {
    Asked asked;
    asked.kind = Asked::Kind::kPing;
    Ask(asked, [](engine::CommandHead head) { return engine::Ping{head}; });
  }
  world_->After(clock_.TrueDelay(plan_.ttl / 3), [this, life] {
    if (life == life_) Ping();
  });
}

uint64_t SimClient::Ask(Asked asked, std::function<engine::Command(engine::CommandHead)> make) {
  const uint64_t request = ++last_request_;
  asked.sent = Now();
  uint64_t channel = channel_;
  if (plan_.bare) {
    channel = daemon_->OpenChannel({[this](engine::Event event) {
                                      if (alive_) OnEvent(event.channel, event);
                                    },
                                    [] {}});
  }
  asked.channel = channel;
  asked_[{channel, request}] = asked;
  daemon_->Send(channel, [channel, request, make = std::move(make)](BootTime received) {
    return make(engine::CommandHead{{channel, request}, "sim", received});
  });
  return request;
}

void SimClient::Act() {
  if (!alive_) return;
  world_->After(world_->Millis(2, 60), [this] { Act(); });
  if (stopped_ || (!plan_.bare && !opened_) || !daemon_->alive()) return;
  const int64_t dice = world_->Between(0, 99);
  if (dice < 40) {
    if (asked_.size() < 4) plan_.keys.size() > 1 && dice < 15 ? TryAcquireAll() : TryAcquire();
  } else if (dice < 75) {
    TryRelease();
  } else if (dice < 85) {
    if (!beliefs_.empty() && plan_.bare) TryRenew(beliefs_.begin()->second);
    for (auto& [id, belief] : beliefs_) {
      if (belief.feed == absl::ZeroDuration() || plan_.bare) continue;
      Asked asked;
      asked.kind = Asked::Kind::kFeed;
      Ask(asked, [id = id](engine::CommandHead head) { return engine::Feed{head, id}; });
    }
  } else if (dice < 92) {
    CancelOne();
  } else if (dice < 94) {
    Stop();
  } else if (dice < 95) {
    silent_ = !silent_;
  } else if (dice < 96 && !plan_.bare && channel_ != 0) {
    world_->Note(absl::StrCat("client ", plan_.number, " ends its stream"));
    const bool silently = world_->Chance(0.3);
    if (silently) {
      // The connection broke: the client cannot know whether the daemon noticed.
      daemon_->CloseChannel(channel_, engine::StreamEnd::kFellSilent);
    } else {
      beliefs_.clear();
      daemon_->CloseChannel(channel_, engine::StreamEnd::kByClient);
    }
    life_++;
    channel_ = 0;
    opened_ = false;
    asked_.clear();
    world_->After(world_->Millis(1, 300), [this] {
      if (alive_) Open();
    });
  }
}

void SimClient::Stop() {
  stopped_ = true;
  for (auto& [id, asked] : asked_) asked.was_stopped = true;
  world_->Note(absl::StrCat("client ", plan_.number, " is stopped"));
  world_->After(world_->Millis(10, 1500), [this] {
    if (!alive_) return;
    stopped_ = false;
    world_->Note(absl::StrCat("client ", plan_.number, " goes on"));
    for (auto& action : std::exchange(while_stopped_, {})) action();
  });
}

void SimClient::ChooseMode(Mode& mode, uint32_t& limit) {
  if (!plan_.all_modes) return;
  const int64_t dice = world_->Between(0, 9);
  if (dice < 4) {
    mode = Mode::kShared;
  } else if (dice < 7) {
    mode = Mode::kPermit;
    limit = world_->Chance(0.95) ? 2 : 3;
  }
}

void SimClient::TryAcquire() {
  engine::Acquire acquire;
  acquire.name = {"default", plan_.keys[world_->Between(0, plan_.keys.size() - 1)]};
  acquire.owner = plan_.owners[world_->Between(0, plan_.owners.size() - 1)];
  const std::vector<const Belief*> held = Beliefs();
  if (!held.empty() && world_->Chance(0.4)) {
    acquire.name = held[0]->name;  // nesting
    acquire.owner = held[0]->owner;
  }
  ChooseMode(acquire.mode, acquire.limit);
  acquire.lease = world_->Millis(100, 400);
  if (world_->Chance(0.6)) acquire.wait = world_->Millis(5, 2000);
  acquire.max_hold = world_->Chance(0.3) ? world_->Millis(150, 900) : absl::ZeroDuration();
  if (world_->Chance(0.05) && *acquire.max_hold == absl::ZeroDuration()) {
    acquire.min_hold = world_->Millis(10, 500);
  }
  if (world_->Chance(0.1) && !plan_.bare) acquire.feed = world_->Millis(100, 400);
  if (world_->Chance(0.05)) acquire.reentry = engine::Reentry::kRefuse;
  const bool repeat = world_->Chance(0.2);
  if (repeat || world_->Chance(0.3)) {
    acquire.command_id = absl::StrCat("c", plan_.number, ".", ++last_command_);
  }
  Asked asked;
  asked.wait = acquire.wait;
  asked.lease = *acquire.lease;
  asked.feed = acquire.feed;
  asked.mode = acquire.mode;
  asked.limit = acquire.limit;
  asked.command_id = acquire.command_id;
  AskMaybeTwice(
      asked,
      [acquire](engine::CommandHead head) {
        engine::Acquire copy = acquire;
        copy.head = head;
        return engine::Command(copy);
      },
      repeat);
}

void SimClient::TryAcquireAll() {
  engine::AcquireAll all;
  all.ns = "default";
  all.owner = plan_.owners[world_->Between(0, plan_.owners.size() - 1)];
  std::vector<std::string> keys = plan_.keys;
  const auto count = static_cast<size_t>(world_->Between(1, keys.size()));
  while (all.keys.size() < count) {
    const auto at = keys.begin() + world_->Between(0, keys.size() - 1);
    engine::KeyAndMode key{*at, Mode::kExclusive, 0};
    ChooseMode(key.mode, key.limit);
    all.keys.push_back(key);
    keys.erase(at);
  }
  all.lease = world_->Millis(100, 400);
  if (world_->Chance(0.7)) all.wait = world_->Millis(5, 2000);
  all.max_hold = world_->Chance(0.3) ? world_->Millis(150, 900) : absl::ZeroDuration();
  if (world_->Chance(0.1) && !plan_.bare) all.feed = world_->Millis(100, 400);
  const bool repeat = world_->Chance(0.2);
  if (repeat || world_->Chance(0.3)) {
    all.command_id = absl::StrCat("c", plan_.number, ".", ++last_command_);
  }
  Asked asked;
  asked.wait = all.wait;
  asked.lease = *all.lease;
  asked.feed = all.feed;
  asked.keys = all.keys;
  asked.command_id = all.command_id;
  AskMaybeTwice(
      asked,
      [all](engine::CommandHead head) {
        engine::AcquireAll copy = all;
        copy.head = head;
        return engine::Command(copy);
      },
      repeat);
}

void SimClient::AskMaybeTwice(const Asked& asked,
                              std::function<engine::Command(engine::CommandHead)> make,
                              bool repeat) {
  Ask(asked, make);
  if (!repeat) return;
  tally_->retries++;
  const uint64_t life = life_;
  world_->After(world_->Millis(0, 600), [this, life, asked, make] {
    if (!alive_ || life != life_ || stopped_ || !daemon_->alive()) return;
    Ask(asked, make);
  });
}

void SimClient::TryRelease() {
  if (beliefs_.empty()) return;
  auto it = beliefs_.begin();
  std::advance(it, world_->Between(0, beliefs_.size() - 1));
  Belief& belief = it->second;
  if (belief.count == 0) return;
  world_->Note(absl::StrCat("client ", plan_.number, " releases ", belief.name.key, " hold ",
                            belief.hold_id));
  belief.count--;  // from here on it does not rely on it
  tally_->releases++;
  engine::Release release;
  release.name = belief.name;
  release.owner = belief.owner;
  release.hold_id = belief.hold_id;
  const bool repeat = world_->Chance(0.2);
  if (repeat) release.command_id = absl::StrCat("c", plan_.number, ".", ++last_command_);
  Asked asked;
  asked.kind = Asked::Kind::kRelease;
  asked.hold_id = belief.hold_id;
  asked.command_id = release.command_id;
  const auto make = [release](engine::CommandHead head) {
    engine::Release copy = release;
    copy.head = head;
    return engine::Command(copy);
  };
  Ask(asked, make);
  if (belief.count == 0) beliefs_.erase(it);
  if (!repeat) return;
  tally_->retries++;
  const uint64_t life = life_;
  world_->After(world_->Millis(0, 300), [this, life, asked, make] {
    if (!alive_ || life != life_ || stopped_ || !daemon_->alive()) return;
    Ask(asked, make);
  });
}

void SimClient::TryRenew(Belief& belief) {
  engine::Renew renew;
  renew.name = belief.name;
  renew.owner = belief.owner;
  renew.hold_id = belief.hold_id;
  renew.lease = belief.lease;
  Asked asked;
  asked.kind = Asked::Kind::kRenew;
  asked.hold_id = belief.hold_id;
  Ask(asked, [renew](engine::CommandHead head) {
    engine::Renew copy = renew;
    copy.head = head;
    return engine::Command(copy);
  });
}

void SimClient::CancelOne() {
  for (const auto& [id, asked] : asked_) {
    if (asked.kind != Asked::Kind::kAcquire) continue;
    if (plan_.bare) {
      const auto here = id;
      daemon_->CloseChannel(here.first, engine::StreamEnd::kByClient);
      asked_.erase(here);
    } else {
      daemon_->Send(channel_, [target = id](BootTime) {
        return engine::Command(engine::Cancel{{target.first, target.second}});
      });
    }
    return;
  }
}

void SimClient::Die(engine::StreamEnd how) {
  alive_ = false;
  beliefs_.clear();
  if (channel_ != 0) daemon_->CloseChannel(channel_, how);
  for (const auto& [id, asked] : asked_) {
    if (plan_.bare) daemon_->CloseChannel(id.first, how);
  }
}

Belief* SimClient::Find(const std::string& hold_id) {
  const auto it = beliefs_.find(hold_id);
  return it == beliefs_.end() ? nullptr : &it->second;
}

void SimClient::Forget(const std::string& hold_id) { beliefs_.erase(hold_id); }

void SimClient::OnEvent(uint64_t channel, const engine::Event& event) {
  if (std::holds_alternative<engine::SessionOpened>(event.body)) {
    opened_ = true;
    silent_ = false;
    Ping();
  } else if (const auto* reply = std::get_if<engine::Reply>(&event.body)) {
    OnReply(channel, *reply);
  } else if (const auto* pong = std::get_if<engine::Pong>(&event.body)) {
    const auto it = asked_.find({channel, pong->request_id});
    if (it == asked_.end()) return Complain("a pong for no ping");
    last_answered_ping_ = std::max(last_answered_ping_, it->second.sent);
    for (auto& [id, belief] : beliefs_) {
      if (!pong->valid_for.has_value()) continue;
      belief.valid_until = std::max(
          belief.valid_until, it->second.sent + *pong->valid_for - SafetyMargin(belief.lease));
    }
    asked_.erase(it);
  } else if (const auto* lost = std::get_if<engine::Lost>(&event.body)) {
    tally_->losses++;
    Forget(lost->hold_id);
    if (world_->Chance(0.7)) {
      Asked asked;
      asked.kind = Asked::Kind::kLostAck;
      Ask(asked, [id = lost->hold_id](engine::CommandHead head) {
        return engine::LostAck{head, id};
      });
    }
  } else if (std::holds_alternative<engine::EndStream>(event.body)) {
    OnClosed();
  }
}

void SimClient::OnReply(uint64_t channel, const engine::Reply& reply) {
  const auto it = asked_.find({channel, reply.request_id});
  if (it == asked_.end()) {
    const auto* status = std::get_if<absl::Status>(&reply.result);
    if (!plan_.bare) {
      Complain(absl::StrCat("answer without a question: ", reply.request_id, " kind ",
                            reply.result.index(), " ",
                            status != nullptr ? std::string(status->message()) : ""));
    }
    return;
  }
  const Asked asked = it->second;
  asked_.erase(it);
  if (plan_.bare) daemon_->CloseChannel(channel, engine::StreamEnd::kByClient);
  const absl::Duration took = Now() - asked.sent;
  if (asked.kind == Asked::Kind::kAcquire && asked.wait > absl::ZeroDuration() &&
      !asked.was_stopped && took > asked.wait * 1.02 + kSlack) {
    Complain(absl::StrCat("an answer after ", absl::FormatDuration(took), " to a wait of ",
                          absl::FormatDuration(asked.wait)));
  }
  if (const auto* grant = std::get_if<engine::Grant>(&reply.result)) {
    return OnGrant(asked, *grant, IsFirstAnswer(asked));
  }
  if (const auto* all = std::get_if<engine::AllGranted>(&reply.result)) {
    return OnAllGranted(asked, *all);
  }
  tally_->sets_refused += std::holds_alternative<engine::NoneGranted>(reply.result);
  if (const auto* refused = std::get_if<engine::NotAcquired>(&reply.result)) {
    tally_->deadlocks += refused->reason == engine::NotAcquiredReason::kDeadlock;
    refused->reason == engine::NotAcquiredReason::kBusy ? tally_->busy++ : tally_->expired_waits++;
  } else if (const auto* renewed = std::get_if<engine::RenewAnswer>(&reply.result)) {
    if (Belief* belief = Find(asked.hold_id)) {
      belief->valid_until =
          std::max(belief->valid_until,
                   asked.sent + renewed->waited + renewed->lease - SafetyMargin(belief->lease));
    }
  } else if (const auto* status = std::get_if<absl::Status>(&reply.result)) {
    tally_->errors++;
    if (ReasonOf(*status) == Reason::kUnspecified || ReasonOf(*status) == Reason::kStoreError ||
        ReasonOf(*status) == Reason::kInvalidField ||
        ReasonOf(*status) == Reason::kCommandMismatch) {
      Complain(absl::StrCat("unexpected error: ", std::string(status->message())));
    }
    const Reason reason = ReasonOf(*status);
    tally_->mode_refusals += reason == Reason::kUpgradeRefused || reason == Reason::kModeMismatch ||
                             reason == Reason::kLimitMismatch;
    if (asked.kind == Asked::Kind::kRenew) Forget(asked.hold_id);
  }
}

bool SimClient::IsFirstAnswer(const Asked& asked) {
  return asked.command_id.empty() || commands_seen_[asked.command_id]++ == 0;
}

void SimClient::OnAllGranted(const Asked& asked, const engine::AllGranted& all) {
  if (all.grants.size() != asked.keys.size()) return Complain("not a grant for each key");
  tally_->sets++;
  const bool first_answer = IsFirstAnswer(asked);
  for (size_t i = 0; i < all.grants.size(); ++i) {
    if (all.grants[i].name.key != asked.keys[i].key) Complain("grants out of order");
    Asked one = asked;
    one.mode = asked.keys[i].mode;
    one.limit = asked.keys[i].limit;
    OnGrant(one, all.grants[i], first_answer);
  }
}

void SimClient::OnGrant(const Asked& asked, const engine::Grant& grant, bool first_answer) {
  const BootTime anchor = asked.sent + grant.waited;
  const BootTime valid_until = anchor + grant.lease - SafetyMargin(asked.lease);
  Belief* belief = Find(grant.hold_id);
  if (!first_answer) {
    if (belief != nullptr) belief->valid_until = std::max(belief->valid_until, valid_until);
    return;
  }
  tally_->grants++;
  tally_->reads += grant.mode == Mode::kShared;
  tally_->permits += grant.mode == Mode::kPermit;
  if (grant.mode != asked.mode &&
      (asked.mode != Mode::kShared || grant.mode != Mode::kExclusive || grant.hold_count == 1)) {
    Complain("a grant in another mode");
  }
  if (belief == nullptr) {
    belief = &beliefs_[grant.hold_id];
    belief->name = grant.name;
    belief->owner = grant.owner;
    belief->hold_id = grant.hold_id;
    belief->mode = grant.mode;
    belief->limit = asked.limit;
    belief->token = grant.token;
    belief->lease = asked.lease;
    belief->feed = asked.feed;
    if (grant.max_hold_remaining.has_value()) {
      belief->hard_until = anchor + *grant.max_hold_remaining - SafetyMargin(asked.lease);
    }
  } else {
    tally_->reentries++;
    belief->lease = std::max(belief->lease, asked.lease);
    if (belief->token != grant.token) Complain("a re-entry with another token");
    if (belief->mode != grant.mode) Complain("a re-entry in another mode");
  }
  belief->count++;
  belief->valid_until = std::max(belief->valid_until, valid_until);
}

}  // namespace holdfast::sim
