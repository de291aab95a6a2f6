// SPDX-License-Identifier: Apache-2.0
//
// What a simulated client does of its own accord.
#include <algorithm>
#include <utility>

#include "tests/sim/client.h"

namespace holdfast::sim {
namespace {

constexpr size_t kMaxAsked = 5;

}  // namespace

absl::Duration SimClient::Times(int64_t low_ms, int64_t high_ms) {
  return ToDuration(world_->Millis(low_ms, high_ms) * plan_.unit);
}

void SimClient::Later() {
  acting_ = true;
  const Nanos delay =
      draining_ ? world_->Millis(1, 20) : world_->Between(plan_.gap_low, plan_.gap_high);
  world_->After(delay, [this] {
    acting_ = false;
    if (alive_) Act();
  });
}

void SimClient::Act() {
  CheckTold();
  if (draining_) {
    if (beliefs_.empty()) return;  // a grant wakes it up again
    Later();
    if (!stopped_) TryRelease(beliefs_.size() - 1);
    return;
  }
  if (*acts_left_ <= 0) return;
  Later();
  if (stopped_ || (!plan_.bare && !opened_)) return;
  --*acts_left_;
  tally_->acts++;
  ActAtRandom();
}

void SimClient::ActAtRandom() {
  const int64_t dice = world_->Between(0, 99);
  if (dice < 43) {
    if (asked_.size() >= kMaxAsked) return;
    plan_.sets&& dice < 15 ? TryAcquireAll() : TryAcquire();
  } else if (dice < 77) {
    if (beliefs_.empty()) return;
    TryRelease(static_cast<size_t>(world_->Between(0, static_cast<int64_t>(beliefs_.size()) - 1)));
  } else if (dice < 86) {
    plan_.bare ? TryRenew() : FeedAll();
  } else if (dice < 92) {
    CancelOne();
  } else if (dice < 94) {
    Stop();
  } else if (dice < 95) {
    silent_ = !silent_;
    present_since_ = Now();
  } else if (dice < 97 && !plan_.bare && channel_ != 0) {
    CutStream();
  }
}

void SimClient::Ask(Asked asked, engine::Command command) {
  SimDaemon* daemon = plan_.bare ? asked.daemon : daemon_;
  if (daemon == nullptr) daemon = AnyDaemon();
  if (daemon == nullptr || !daemon->alive() || (!plan_.bare && channel_ == 0)) return;
  asked.daemon = daemon;
  asked.request = ++last_request_;
  asked.sent = Now();
  asked.sent_at = world_->now();
  asked.channel = plan_.bare ? daemon->OpenChannel(this, life_) : channel_;
  daemon->Send(asked.channel, asked.request, std::move(command));
  asked_.push_back(std::move(asked));
}

void SimClient::AskTwice(const Asked& asked, const engine::Command& command, Nanos within) {
  tally_->retries++;
  Asked first = asked;
  if (plan_.bare && first.daemon == nullptr) first.daemon = AnyDaemon();
  if (plan_.bare && first.daemon == nullptr) return;
  Ask(first, command);
  world_->After(world_->Between(0, within), [this, life = life_, first, command] {
    if (!alive_ || life != life_ || stopped_) return;
    Ask(first, command);
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

absl::Duration SimClient::ChooseWait() {
  if (world_->Chance(0.35)) return absl::ZeroDuration();
  if (plan_.patient && world_->Chance(0.5)) return ToDuration(world_->Millis(30'000, 120'000));
  return Times(5, 2000);
}

bool SimClient::ChooseCommandId(std::string& command_id, Asked& asked) {
  const bool repeat = world_->Chance(0.2);
  if (repeat || world_->Chance(0.2)) {
    asked.command = ++last_command_;
    command_id = absl::StrCat("c", plan_.number, ".", last_command_);
  }
  return repeat;
}

void SimClient::TryAcquire() {
  engine::Acquire acquire;
  acquire.name = world_->OneOf(plan_.keys);
  acquire.owner = world_->OneOf(plan_.owners);
  if (!beliefs_.empty() && Relies(beliefs_[0]) && world_->Chance(0.4)) {
    acquire.name = beliefs_[0].name;  // nesting
    acquire.owner = beliefs_[0].owner;
  }
  ChooseMode(acquire.mode, acquire.limit);
  acquire.lease = Times(100, 400);
  acquire.wait = ChooseWait();
  if (plan_.fifo && world_->Chance(0.7)) acquire.ordering = engine::Ordering::kFifo;
  acquire.max_hold = world_->Chance(0.3) ? Times(150, 900) : absl::ZeroDuration();
  if (world_->Chance(0.05) && *acquire.max_hold == absl::ZeroDuration()) {
    acquire.min_hold = Times(10, 500);
  }
  if (world_->Chance(0.1) && !plan_.bare) acquire.feed = Times(100, 400);
  if (world_->Chance(0.05)) acquire.reentry = engine::Reentry::kRefuse;
  Asked asked;
  asked.wait = acquire.wait;
  asked.lease = *acquire.lease;
  asked.feed = acquire.feed;
  asked.mode = acquire.mode;
  asked.limit = acquire.limit;
  const bool repeat = ChooseCommandId(acquire.command_id, asked);
  world_->Note("client ", plan_.number, " asks for ", acquire.name.key, " for ", acquire.owner,
               " mode ", static_cast<int>(acquire.mode), " wait ",
               absl::ToInt64Milliseconds(acquire.wait), " ms ", acquire.command_id);
  if (repeat) return AskTwice(asked, acquire, 600 * kMillisecond);
  Ask(std::move(asked), std::move(acquire));
}

void SimClient::TryAcquireAll() {
  engine::AcquireAll all;
  all.ns = plan_.keys[0].ns;
  all.owner = world_->OneOf(plan_.owners);
  std::vector<KeyName> keys = plan_.keys;
  const auto count = static_cast<size_t>(world_->Between(1, static_cast<int64_t>(keys.size())));
  while (all.keys.size() < count) {
    const auto at = keys.begin() + world_->Between(0, static_cast<int64_t>(keys.size()) - 1);
    engine::KeyAndMode key{at->key, Mode::kExclusive, 0};
    ChooseMode(key.mode, key.limit);
    all.keys.push_back(std::move(key));
    keys.erase(at);
  }
  all.lease = Times(100, 400);
  all.wait = ChooseWait();
  if (plan_.fifo && world_->Chance(0.7)) all.ordering = engine::Ordering::kFifo;
  all.max_hold = world_->Chance(0.3) ? Times(150, 900) : absl::ZeroDuration();
  if (world_->Chance(0.1) && !plan_.bare) all.feed = Times(100, 400);
  Asked asked;
  asked.wait = all.wait;
  asked.lease = *all.lease;
  asked.feed = all.feed;
  asked.keys = all.keys;
  const bool repeat = ChooseCommandId(all.command_id, asked);
  world_->Note("client ", plan_.number, " asks for ", count, " keys for ", all.owner, " wait ",
               absl::ToInt64Milliseconds(all.wait), " ms ", all.command_id);
  if (repeat) return AskTwice(asked, all, 600 * kMillisecond);
  Ask(std::move(asked), std::move(all));
}

void SimClient::TryRelease(size_t at) {
  Belief& belief = beliefs_[at];
  world_->Note("client ", plan_.number, " releases ", belief.name.key, " hold ", belief.hold_id);
  belief.count--;  // from here on it does not rely on it
  tally_->releases++;
  engine::Release release;
  release.name = belief.name;
  release.owner = belief.owner;
  release.hold_id = belief.hold_id;
  Asked asked;
  asked.kind = Asked::Kind::kRelease;
  asked.hold_id = belief.hold_id;
  if (belief.count == 0) beliefs_.erase(beliefs_.begin() + static_cast<ptrdiff_t>(at));
  const bool repeat = !draining_ && world_->Chance(0.2);
  if (!repeat) return Ask(std::move(asked), std::move(release));
  release.command_id = absl::StrCat("c", plan_.number, ".", ++last_command_);
  AskTwice(asked, release, 300 * kMillisecond);
}

void SimClient::TryRenew() {
  if (beliefs_.empty()) return;
  const Belief& belief = world_->OneOf(beliefs_);
  engine::Renew renew;
  renew.name = belief.name;
  renew.owner = belief.owner;
  renew.hold_id = belief.hold_id;
  renew.lease = belief.lease;
  Asked asked;
  asked.kind = Asked::Kind::kRenew;
  asked.hold_id = belief.hold_id;
  Ask(std::move(asked), std::move(renew));
}

void SimClient::FeedAll() {
  for (const Belief& belief : beliefs_) {
    if (belief.feed == absl::ZeroDuration()) continue;
    Asked asked;
    asked.kind = Asked::Kind::kFeed;
    Ask(std::move(asked), engine::Feed{{}, belief.hold_id});
  }
}

void SimClient::CancelOne() {
  const auto it = std::find_if(asked_.begin(), asked_.end(), [](const Asked& asked) {
    return asked.kind == Asked::Kind::kAcquire;
  });
  if (it == asked_.end()) return;
  world_->Note("client ", plan_.number, " cancels request ", it->request);
  if (!plan_.bare) {
    return daemon_->Send(channel_, 0, engine::Cancel{{channel_, it->request}});
  }
  it->daemon->CloseChannel(it->channel, engine::StreamEnd::kByClient);
  asked_.erase(it);
}

}  // namespace holdfast::sim
