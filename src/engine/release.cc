// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/times.h"
#include "src/engine/validate.h"

namespace holdfast::engine {
namespace {

absl::Status NotOwner() {
  return Fail(Reason::kNotOwner, "owner", "the key is not held by this owner under this hold_id");
}

absl::Status HoldIsOver() {
  return Fail(Reason::kLeaseExpired, "hold_id",
              "the hold is over: it was released before, lost, or its lease ran out");
}

absl::Status GoneStatus(const HoldGone& gone) {
  return gone.held_by_other ? NotOwner() : HoldIsOver();
}

}  // namespace

void EngineCore::Handle(Release command) {
  const ReplyTo reply_to = command.head.reply_to;
  if (absl::Status valid = Validate(command); !valid.ok()) return Answer1(reply_to, valid);
  Hold* hold = FindHold(command.hold_id);
  std::string log_key;
  if (!command.command_id.empty()) {
    log_key = CommandLog::Key(command.hold_id, command.name, command.command_id);
    if (AnsweredBefore(command, log_key)) return;
  }
  if (hold != nullptr && (hold->ref.owner != command.owner || hold->ref.name != command.name)) {
    return Answer1(reply_to, NotOwner());
  }
  if (hold != nullptr && hold->lost) {
    // Who gives the last of it back has stopped working. An inner release may have crossed the
    // loss.
    if (hold->count == 1) GiveBack(*hold);
    return Answer1(reply_to, HoldIsOver());
  }
  if (hold == nullptr && !store_up_) return Answer1(reply_to, StoreUnreachable());

  Line& line = LineOf(command.name);
  LineOp op;
  op.kind = LineOp::Kind::kRelease;
  op.ref =
      hold != nullptr ? hold->ref : HoldRef{command.name, command.owner, command.hold_id, "", 1};
  op.op_id = command.command_id.empty() ? EngineOpId() : absl::StrCat("r", command.command_id);
  op.hold = hold != nullptr ? hold->id : 0;
  op.callers = {Caller{reply_to, command.head.received}};
  op.log_key = log_key;
  // Those who only ask whether they are the owner already can wait, but not for their own release.
  auto at = line.ops.end();
  for (; at != line.ops.begin(); --at) {
    const LineOp& other = *std::prev(at);
    const bool yields = other.kind == LineOp::Kind::kProbe && other.request == 0 &&
                        !other.maybe_applied && other.ref.owner != op.ref.owner;
    if (!yields) break;
  }
  LineOp& queued = *line.ops.insert(at, std::move(op));
  if (!log_key.empty()) log_.Begin(log_key, 0, UnderWay{.op = &queued});
  if (hold != nullptr) {
    hold->releasing++;
    if (!store_up_) {
      AnswerAll(std::exchange(queued.callers, {}),
                Fail(Reason::kStoreUnreachable, "",
                     "the store cannot be reached: the release will be done when it is back"));
    }
  }
  Pump(line);
}

void EngineCore::FinishRelease(LineOp& op, Answer answer, bool had_effect) {
  if (!op.log_key.empty()) {
    if (had_effect) {
      log_.Finish(op.log_key, LoggedAnswer{std::get<ReleaseAnswer>(answer), now_, 0, {}}, false,
                  now_);
    } else {
      log_.Abandon(op.log_key);
    }
  }
  AnswerAll(op.callers, answer);
}

void EngineCore::OnReleaseReply(Line& line, LineOp op, StoreReply& reply) {
  Hold* hold = HoldById(op.hold);
  if (hold != nullptr && hold->releasing > 0) hold->releasing--;
  if (const auto* released = std::get_if<Released>(&reply.result)) {
    FinishRelease(op, ReleaseAnswer{released->owner_count}, true);
    if (hold != nullptr) hold->count = released->hold_count;
    if (hold != nullptr && hold->count == 0) DropHold(*hold);
    if (released->hold_count == 0) {
      std::erase_if(line.last_holders,
                    [&](const HolderState& holder) { return holder.hold_id == op.ref.hold_id; });
    }
    if (released->freed) Wake(line);
    return AfterRelease(line, *released);
  }
  if (const auto* gone = std::get_if<HoldGone>(&reply.result)) {
    // An earlier attempt, whose answer was lost, did it: nothing else ends a
    // hold's last count before its lease.
    const bool done_before = hold != nullptr && op.maybe_applied && hold->count == 1 &&
                             !hold->lost && now_ < hold->lease_end;
    if (done_before) {
      FinishRelease(op, ReleaseAnswer{gone->owner_count}, true);
      DropHold(*hold);
    } else {
      FinishRelease(op, GoneStatus(*gone), false);
      if (hold != nullptr && !hold->lost) Lose(*hold, LossReason::kStoreLostIt, /*gone=*/true);
    }
    return Wake(line);
  }
  const auto* failure = std::get_if<StoreFailure>(&reply.result);
  FinishRelease(op, failure != nullptr ? StatusOf(*failure) : HoldIsOver(), false);
}

void EngineCore::AfterRelease(Line& line, const Released& released) {
  if (!released.handed_to.empty()) {
    HandedOn(line, released.handed_to, released.kept_for);
  } else if (released.kept_for > absl::ZeroDuration()) {
    RetryAt(line, now_ + released.kept_for);
  }
}

void EngineCore::OnGiveBackReply(Line& line, const LineOp& op, const StoreReply& reply) {
  const auto* released = std::get_if<Released>(&reply.result);
  Hold* hold = HoldById(op.hold);
  if (hold != nullptr) {
    if (hold->releasing > 0) hold->releasing--;
    if (released != nullptr) {
      const bool forgot = op.kind == LineOp::Kind::kUndo && released->hold_count >= hold->count;
      hold->count = released->hold_count;
      if (forgot) return TakeOneOff(line, op, *hold);
      if (hold->count == 0) DropHold(*hold);
    } else if (std::holds_alternative<HoldGone>(reply.result) && !hold->lost) {
      Lose(*hold, LossReason::kStoreLostIt, /*gone=*/true);
    }
  }
  if (released != nullptr) AfterRelease(line, *released);
  // An undo says nothing about who else waits; a give-back frees the key either way.
  const bool handed_on = released != nullptr && !released->handed_to.empty();
  if (handed_on) return;
  if (op.kind == LineOp::Kind::kGiveBack || (released != nullptr && released->freed)) Wake(line);
}

void EngineCore::Handle(Renew command) {
  const ReplyTo reply_to = command.head.reply_to;
  if (absl::Status valid = Validate(command, options_); !valid.ok())
    return Answer1(reply_to, valid);
  Hold* hold = FindHold(command.hold_id);
  std::string log_key;
  if (!command.command_id.empty()) {
    log_key = CommandLog::Key(command.hold_id, command.name, command.command_id);
    if (AnsweredBefore(command, log_key)) return;
  }
  if (hold != nullptr && (hold->ref.owner != command.owner || hold->ref.name != command.name)) {
    return Answer1(reply_to, NotOwner());
  }
  if (hold != nullptr && (hold->lost || hold->being_released()))
    return Answer1(reply_to, HoldIsOver());
  if (!store_up_) return Answer1(reply_to, StoreUnreachable());

  RenewOp op;
  if (hold != nullptr) op.mode = hold->mode;
  op.hold =
      hold != nullptr ? hold->ref : HoldRef{command.name, command.owner, command.hold_id, "", 1};
  op.lease = command.lease.value_or(
      hold != nullptr ? hold->lease : std::min(options_.default_lease, options_.max_lease));
  Pending pending;
  pending.kind = Pending::Kind::kClientRenew;
  pending.hold = hold != nullptr ? hold->id : 0;
  pending.callers = {Caller{reply_to, command.head.received}};
  pending.log_key = log_key;
  const uint64_t request = Submit(std::move(op), std::move(pending));
  if (!log_key.empty()) log_.Begin(log_key, 1, UnderWay{.renewal = request});
}

void EngineCore::OnClientRenewReply(Pending pending, StoreReply& reply) {
  Hold* hold = HoldById(pending.hold);
  if (const auto* renewed = std::get_if<Renewed>(&reply.result)) {
    RenewAnswer answer{renewed->lease_remaining, absl::ZeroDuration(), std::nullopt};
    if (renewed->max_hold_remaining != absl::InfiniteDuration()) {
      answer.max_hold_remaining = renewed->max_hold_remaining;
    }
    if (hold != nullptr && !hold->lost) {
      hold->lease_end = std::max(hold->lease_end, pending.sent + renewed->lease_remaining);
      if (WasForced(*hold, *renewed)) {
        Lose(*hold, LossReason::kForced, false);
      } else {
        ArmHold(*hold);
      }
    }
    if (!pending.log_key.empty()) {
      log_.Finish(pending.log_key, LoggedAnswer{answer, pending.sent, 0, {}}, false, now_);
    }
    for (const Caller& caller : pending.callers) {
      Answer1(caller.to, AnswerFor(caller, answer, pending.sent));
    }
    return;
  }
  if (!pending.log_key.empty()) log_.Abandon(pending.log_key);
  if (const auto* gone = std::get_if<HoldGone>(&reply.result)) {
    AnswerAll(pending.callers, GoneStatus(*gone));
    if (hold != nullptr && !hold->lost && !hold->being_released()) {
      Lose(*hold, LossReason::kStoreLostIt, /*gone=*/true);
    }
    return;
  }
  const auto* failure = std::get_if<StoreFailure>(&reply.result);
  AnswerAll(pending.callers, failure != nullptr ? StatusOf(*failure) : HoldIsOver());
}

void EngineCore::Handle(Feed command) {
  const ReplyTo reply_to = command.head.reply_to;
  if (absl::Status valid = ValidateHoldId(command.hold_id); !valid.ok())
    return Answer1(reply_to, valid);
  Hold* hold = FindHold(command.hold_id);
  const Session* session = SessionOfChannel(reply_to.channel);
  if (session == nullptr || hold == nullptr || hold->session != session->id || hold->lost) {
    return Answer1(reply_to, HoldIsOver());
  }
  if (hold->feed > absl::ZeroDuration()) hold->feed_end = now_ + hold->feed;
  Answer1(reply_to, FeedAnswer{});
}

void EngineCore::Handle(LostAck command) {
  const ReplyTo reply_to = command.head.reply_to;
  if (absl::Status valid = ValidateHoldId(command.hold_id); !valid.ok())
    return Answer1(reply_to, valid);
  Hold* hold = FindHold(command.hold_id);
  const Session* session = SessionOfChannel(reply_to.channel);
  if (session != nullptr && hold != nullptr && hold->session == session->id) {
    // Also where only the client's own clock says that it is lost.
    if (!hold->lost) hold->loss = LossReason::kLeaseExpired;
    GiveBack(*hold);
  }
  Answer1(reply_to, LostAckAnswer{});
}

Hold* EngineCore::FindHold(absl::string_view hold_id) {
  const auto it = hold_ids_.find(hold_id);
  return it == hold_ids_.end() ? nullptr : HoldById(it->second);
}

Hold* EngineCore::HoldById(LocalId id) {
  const auto it = holds_.find(id);
  return it == holds_.end() ? nullptr : it->second.get();
}

void EngineCore::DropHold(Hold& hold) {
  Line& line = LineOf(hold.ref.name);
  std::erase(line.holds, hold.id);
  if (Session* session = SessionById(hold.session)) {
    session->holds.erase(hold.id);
    if (session->closing) maybe_closed_.push_back(session->id);
  }
  for (const std::string& key : hold.commands) log_.Unpin(key, now_);
  hold_ids_.erase(hold.ref.hold_id);
  holds_.erase(hold.id);
  Wake(line);
  Pump(line);
}

// So much was taken and given since that the hold does not remember the op any more. Its count is
// there: the grant was recorded.
void EngineCore::TakeOneOff(Line& line, const LineOp& undo, Hold& hold) {
  LineOp op;
  op.kind = LineOp::Kind::kRelease;
  op.ref = hold.ref;
  op.op_id = EngineOpId();
  op.hold = hold.id;
  op.drop_at = undo.drop_at;
  hold.releasing++;
  line.ops.push_front(std::move(op));
}

void EngineCore::GiveBack(Hold& hold) {
  TellEnd(hold);
  Line& line = LineOf(hold.ref.name);
  LineOp op;
  op.kind = LineOp::Kind::kGiveBack;
  op.ref = hold.ref;
  op.op_id = EngineOpId();
  op.drop_at = now_ + 2 * std::max(hold.lease, options_.max_lease);
  line.ops.push_back(std::move(op));
  DropHold(hold);
}

}  // namespace holdfast::engine
