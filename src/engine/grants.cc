// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/times.h"

namespace holdfast::engine {
namespace {

// A retry a little after the moment when the key should be free.
constexpr absl::Duration kAfterExpiry = absl::Milliseconds(2);

}  // namespace

void EngineCore::OnTakeReply(Line& line, const LineOp& op, StoreReply& reply) {
  if (const auto* granted = std::get_if<Granted>(&reply.result)) {
    OnGranted(line, op, *granted);
    return AfterTry(line, op, /*granted=*/true);
  }
  if (auto* busy = std::get_if<Busy>(&reply.result)) {
    OnBusy(line, op, *busy);
    return AfterTry(line, op, /*granted=*/false);
  }
  if (const auto* grace = std::get_if<InGrace>(&reply.result)) {
    return OnInGrace(line, op, grace->remaining);
  }
  if (const auto* failure = std::get_if<StoreFailure>(&reply.result)) {
    return OnTakeFailure(line, op, *failure);
  }
  Waiter* waiter = WaiterById(op.waiter);
  if (waiter == nullptr) return;
  if (std::holds_alternative<ReentryRefused>(reply.result)) {
    AnswerWaiter(*waiter, Fail(Reason::kReentryRefused, "owner",
                               "the owner holds the key already, and reentry is REFUSE"));
  } else if (const auto* refused = std::get_if<ModeRefused>(&reply.result)) {
    AnswerWaiter(*waiter, StatusOf(*refused, waiter->command));
  } else if (std::holds_alternative<HoldGone>(reply.result)) {
    AnswerWaiter(*waiter, waiter->known_forgotten
                              ? Fail(Reason::kCommandForgotten, "command_id",
                                     "this command was run before and its answer is forgotten; it "
                                     "was not run again")
                              : Fail(Reason::kLeaseExpired, "command_id",
                                     "this command was run before, and the hold it got is over"));
  } else {
    AnswerWaiter(*waiter,
                 Fail(Reason::kStoreError, "", "the store gave an answer of another kind"));
  }
}

void EngineCore::OnGranted(Line& line, const LineOp& op, const Granted& granted) {
  Waiter* waiter = WaiterById(op.waiter);
  if (waiter == nullptr) {
    if (op.kind != LineOp::Kind::kReplay) PushUndo(line, op);
    return;
  }
  const BootTime lease_end = op.sent + granted.lease_remaining;
  const Hold* lost = HoldOf(waiter->session, line, op.ref.owner);
  if (lost != nullptr && !lost->lost) lost = nullptr;
  const bool too_late = lease_end - SafetyMargin(waiter->lease) <= now_;
  // It joined a hold that this engine is giving back behind it.
  const bool joined_ended = waiter->session != 0 && granted.hold_id != op.ref.hold_id &&
                            FindHold(granted.hold_id) == nullptr;
  if ((too_late || joined_ended || lost != nullptr) && op.kind != LineOp::Kind::kReplay) {
    PushUndo(line, op);
    if (lost != nullptr) {
      AnswerWaiter(*waiter, Fail(Reason::kLeaseExpired, "owner",
                                 "the owner's hold of this key was lost meanwhile"));
    } else if (joined_ended || (waiter->waits() && waiter->deadline > now_)) {
      line.ops.push_back(TakeOp(*waiter, op.kind));
    } else {
      AnswerWaiter(*waiter, StoreUnreachable());
    }
    return;
  }

  Grant grant{op.ref.name,
              op.ref.owner,
              granted.hold_id,
              granted.mode,
              granted.token,
              granted.owner_count,
              granted.lease_remaining,
              absl::ZeroDuration(),
              std::nullopt,
              waiter->command.session_id};
  grant.new_hold = granted.hold_id == op.ref.hold_id;
  if (granted.max_hold_remaining != absl::InfiniteDuration()) {
    grant.max_hold_remaining = granted.max_hold_remaining;
  }
  Hold* hold = waiter->session != 0 ? &RecordGrant(line, *waiter, op, granted) : nullptr;
  if (!waiter->log_key.empty() && !waiter->replay_only) {
    LoggedAnswer logged{grant, op.sent, 0, {}};
    if (hold != nullptr) logged.hold = hold->id;
    const bool pinned = hold != nullptr && hold->commands.size() < kPinnedCommands;
    if (pinned) hold->commands.push_back(waiter->log_key);
    log_.Finish(waiter->log_key, std::move(logged), pinned, now_);
  }
  line.try_again = false;
  line.last_holders.clear();
  if (op.kind != LineOp::Kind::kReplay) HasLeft(line, *waiter, op, granted);
  for (const Caller& caller : waiter->callers) {
    Answer1(caller.to, AnswerFor(caller, grant, op.sent));
  }
  RemoveWaiter(*waiter, /*wake_next=*/false);
  if (line.waiters.empty()) return;
  if (NextFits(line, granted)) return Wake(line);
  RetryAt(line, now_ + std::min(granted.lease_remaining + kAfterExpiry, limits::kWakeRetry));
  Watch(line);
  TellContended(line);
}

bool EngineCore::NextFits(const Line& line, const Granted& granted) {
  if (!granted.more_fit || granted.mode == Mode::kExclusive) return false;
  return WaiterById(line.waiters.front())->command.mode == granted.mode;
}

absl::Status EngineCore::StatusOf(const ModeRefused& refused, const Acquire& asked) {
  if (refused.held == Mode::kPermit && asked.mode == Mode::kPermit) {
    return Fail(Reason::kLimitMismatch, "limit",
                absl::StrCat("the key is held with a limit of ", refused.limit,
                             " permits, and this request says ", asked.limit,
                             "; all must name the same limit"));
  }
  if (refused.held == Mode::kShared && asked.mode == Mode::kExclusive) {
    return Fail(Reason::kUpgradeRefused, "mode",
                "the owner holds the key SHARED and cannot make that EXCLUSIVE: it would wait for "
                "itself; release first, or acquire EXCLUSIVE from the start");
  }
  const absl::string_view held = refused.held == Mode::kPermit   ? "as a PERMIT"
                                 : refused.held == Mode::kShared ? "SHARED"
                                                                 : "EXCLUSIVE";
  return Fail(Reason::kModeMismatch, "mode",
              absl::StrCat("the owner holds the key ", held,
                           ", which does not go with this mode; release first"));
}

Hold& EngineCore::RecordGrant(Line& line, const Waiter& waiter, const LineOp& op,
                              const Granted& granted) {
  Hold* hold = FindHold(granted.hold_id);
  if (hold == nullptr) {
    auto owned = std::make_unique<Hold>();
    hold = owned.get();
    hold->id = ++last_id_;
    hold->session = waiter.session;
    hold->ref = op.ref;
    hold->ref.hold_id = granted.hold_id;
    hold->mode = granted.mode;
    hold->note = waiter.command.note;
    hold->lease = waiter.lease;
    hold->granted = op.sent;
    // A re-entry does not move it: where it has come nearer, the next renewal finds that.
    hold->hard_end = op.sent + granted.max_hold_remaining;
    hold->partial = waiter.of_set;
    hold_ids_[granted.hold_id] = hold->id;
    SessionById(waiter.session)->holds.insert(hold->id);
    line.holds.push_back(hold->id);
    holds_[hold->id] = std::move(owned);
  }
  if (!waiter.of_set) hold->partial = false;
  hold->token = granted.token;
  hold->count = granted.hold_count;
  hold->lease = std::max(hold->lease, waiter.lease);
  hold->lease_end = std::max(hold->lease_end, op.sent + granted.lease_remaining);
  if (waiter.command.feed > absl::ZeroDuration() && hold->feed == absl::ZeroDuration()) {
    hold->feed = waiter.command.feed;
    hold->feed_end = now_ + hold->feed;
  }
  if (!hold->renewing) hold->next_renew = NextRenewal(*hold, op.sent);
  ArmHold(*hold);
  return *hold;
}

void EngineCore::OnBusy(Line& line, const LineOp& op, Busy& busy) {
  const bool by_head = op.kind == LineOp::Kind::kTry;
  if (by_head || !busy.holders.empty()) {
    line.last_holders = std::move(busy.holders);
    line.holders_at = op.sent;
  }
  Entered(line, op);
  Waiter* waiter = WaiterById(op.waiter);
  if (waiter != nullptr) waiter->saw_grace = false;
  if (waiter != nullptr && by_head && waiter->command.mode == Mode::kExclusive) {
    waiter->keeps_off =
        !line.last_holders.empty() && line.last_holders.front().mode != Mode::kExclusive;
  }
  if (waiter != nullptr && waiter->waits()) {
    TellWaiting(*waiter);
  } else if (waiter != nullptr) {
    AnswerWaiter(*waiter, Refusal(*waiter, NotAcquiredReason::kBusy));
  }
  if (line.waiters.empty()) return;
  TellContended(line);
  if (!by_head) return;
  if (busy.handed_to.empty() || busy.handed_to == life_) {
    RetryAt(line, now_ + std::min(busy.free_in + kAfterExpiry, limits::kWakeRetry));
  } else {
    HandedOn(line, busy.handed_to, busy.free_in);
    RetryAt(line, now_ + limits::kWakeRetry);
  }
  Watch(line);
}

void EngineCore::OnInGrace(Line& line, const LineOp& op, absl::Duration remaining) {
  grace_until_ = now_ + remaining;
  Entered(line, op);
  if (Waiter* waiter = WaiterById(op.waiter)) {
    waiter->saw_grace = true;
    if (waiter->waits()) {
      TellWaiting(*waiter);
    } else {
      AnswerWaiter(*waiter, GraceStatus());
    }
  }
  if (!line.waiters.empty()) RetryAt(line, now_ + remaining + kAfterExpiry);
}

void EngineCore::OnTakeFailure(Line& line, const LineOp& op, const StoreFailure& failure) {
  if ((op.maybe_applied || failure.maybe_applied) && op.kind != LineOp::Kind::kReplay) {
    PushUndo(line, op);
  }
  if (Waiter* waiter = WaiterById(op.waiter)) AnswerWaiter(*waiter, StatusOf(failure));
}

void EngineCore::PushUndo(Line& line, const LineOp& op) {
  LineOp undo;
  undo.kind = LineOp::Kind::kUndo;
  undo.ref = op.ref;
  undo.op_id = op.op_id;
  undo.drop_at = now_ + 2 * options_.max_lease;
  line.ops.push_front(std::move(undo));
}

void EngineCore::TellContended(Line& line) {
  for (const LocalId id : line.holds) {
    Hold& hold = *HoldById(id);
    const Session* session = SessionById(hold.session);
    if (hold.contended || hold.partial || session == nullptr || session->channel == 0) continue;
    hold.contended = true;
    Send(session->channel, Contended{hold.ref.name, hold.ref.hold_id});
  }
}

}  // namespace holdfast::engine
