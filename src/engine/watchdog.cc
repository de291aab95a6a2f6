// SPDX-License-Identifier: Apache-2.0
#include "src/engine/core.h"

namespace holdfast::engine {
namespace {

// Renewals of one lease fall on common ticks, so that many go to the store in one call.
constexpr int64_t kTicksPerLease = 64;

}  // namespace

BootTime EngineCore::NextRenewal(const Hold& hold, BootTime from) {
  const int64_t tick = std::max<int64_t>(absl::ToInt64Nanoseconds(hold.lease) / kTicksPerLease, 1);
  const int64_t due = (from + hold.lease / 3).nanos();
  return BootTime::FromNanos(due / tick * tick);
}

BootTime EngineCore::ValidityEnd(const Hold& hold) const {
  return std::min(hold.lease_end, hold.hard_end) - SafetyMargin(hold.lease);
}

void EngineCore::ArmHold(Hold& hold) {
  BootTime due = hold.lease_end;
  if (!hold.lost) {
    due = std::min(ValidityEnd(hold), hold.feed_end);
    if (!hold.renewing && !hold.being_released()) due = std::min(due, hold.next_renew);
  }
  if (due >= hold.timer_at) return;
  hold.timer_at = due;
  timers_.Add(Timer{due, TimerKind::kHold, hold.id});
}

void EngineCore::OnHoldTimer(LocalId id) {
  Hold* hold = HoldById(id);
  if (hold == nullptr || hold->timer_at > now_) return;  // an older timer of the same hold
  hold->timer_at = BootTime::Infinite();
  if (hold->lost) {
    // Nobody can rely on it any more. The store may keep it a little longer
    // where the answer to a renewal was lost.
    if (hold->lease_end <= now_) return GiveBack(*hold);
  } else if (ValidityEnd(*hold) <= now_) {
    const bool by_max_hold = hold->at_max_hold();
    return Lose(*hold, by_max_hold ? LossReason::kMaxHold : LossReason::kLeaseExpired, false);
  } else if (hold->feed_end <= now_) {
    return Lose(*hold, LossReason::kFeedMissed, false);
  } else if (hold->next_renew <= now_ && !hold->renewing && !hold->being_released()) {
    Renew1(*hold);
  }
  ArmHold(*hold);
}

void EngineCore::Renew1(Hold& hold) {
  hold.renewing = true;
  hold.next_renew = BootTime::Infinite();
  Pending pending;
  pending.kind = Pending::Kind::kWatchdog;
  pending.hold = hold.id;
  Submit(RenewOp{hold.ref, hold.lease, hold.mode}, std::move(pending));
}

void EngineCore::OnWatchdogReply(LocalId id, BootTime sent, StoreReply& reply) {
  Hold* hold = HoldById(id);
  if (hold == nullptr) return;
  hold->renewing = false;
  if (const auto* renewed = std::get_if<Renewed>(&reply.result)) {
    if (hold->lost) return;
    hold->lease_end = std::max(hold->lease_end, sent + renewed->lease_remaining);
    if (WasForced(*hold, *renewed)) return Lose(*hold, LossReason::kForced, false);
    hold->next_renew = hold->at_max_hold() ? hold->hard_end : NextRenewal(*hold, sent);
  } else if (std::holds_alternative<HoldGone>(reply.result)) {
    // A release under way has ended it: its own answer follows.
    if (hold->lost || hold->being_released()) return;
    return Lose(*hold, LossReason::kStoreLostIt, /*gone=*/true);
  } else {
    const absl::Duration retry = std::min(hold->lease / 10, absl::Milliseconds(200));
    hold->next_renew = store_up_ ? now_ + retry : BootTime::Infinite();
  }
  ArmHold(*hold);
}

void EngineCore::Lose(Hold& hold, LossReason reason, bool gone) {
  // Nobody was told that it was held. Its set finds out when it looks for completeness.
  if (hold.partial) return gone ? DropHold(hold) : GiveBack(hold);
  const Session* session = SessionById(hold.session);
  if (session != nullptr && session->channel != 0) {
    Send(session->channel,
         Lost{hold.ref.name, hold.ref.owner, hold.ref.hold_id, hold.token, reason});
  }
  hold.loss = reason;
  TellLost(hold, reason);
  if (gone) return DropHold(hold);
  hold.lost = true;
  ArmHold(hold);
}

}  // namespace holdfast::engine
