// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/validate.h"

namespace holdfast::engine {

void EngineCore::Handle(Acquire command) {
  const ReplyTo reply_to = command.head.reply_to;
  Session* session = nullptr;
  absl::Status valid = OwnSession(reply_to, &command.session_id, &session);
  if (valid.ok()) valid = Validate(command, options_);
  if (valid.ok()) valid = NamedSession(command.session_id, &session);
  if (!valid.ok()) return Answer1(reply_to, valid);

  auto waiter = std::make_unique<Waiter>();
  waiter->callers = {Caller{reply_to, command.head.received}};
  waiter->session = session == nullptr ? 0 : session->id;
  if (!command.command_id.empty()) {
    const std::string key = CommandLog::Key(command.session_id, command.name, command.command_id);
    if (AnsweredBefore(command, key, waiter)) return;
    waiter->log_key = key;
    waiter->digest = DigestOf(command);  // as the caller sent it: a retry sends the same
  }
  if (draining_ && !waiter->replay_only) {
    return Answer1(reply_to, Fail(Reason::kDraining, "",
                                  "the daemon is shutting down and grants nothing any more"));
  }

  waiter->owner_is_new = command.owner.empty();
  if (waiter->owner_is_new) command.owner = ids_->NewId();
  waiter->lease = command.lease.value_or(
      session != nullptr ? session->lease : std::min(options_.default_lease, options_.max_lease));
  waiter->max_hold = command.max_hold.value_or(options_.default_max_hold);
  if (waiter->max_hold == absl::ZeroDuration()) waiter->max_hold = absl::InfiniteDuration();
  waiter->deadline = command.head.received + command.wait;
  waiter->op_id = command.command_id.empty() ? EngineOpId() : absl::StrCat("a", command.command_id);
  waiter->command = std::move(command);
  StartWaiter(std::move(waiter));
}

void EngineCore::StartWaiter(std::unique_ptr<Waiter> owned) {
  Waiter& waiter = *owned;
  const ReplyTo reply_to = waiter.callers[0].to;
  Line& line = LineOf(waiter.command.name);
  absl::Status refused = absl::OkStatus();
  if (!store_up_ && !waiter.waits()) {
    refused = StoreUnreachable();
  } else if (Hold* hold = HoldOf(waiter.session, line, waiter.command.owner);
             hold != nullptr && hold->lost) {
    refused = Fail(Reason::kLeaseExpired, "owner",
                   "the owner's hold of this key was lost; acknowledge that (lost_ack) and stop "
                   "working under it before taking the key again");
  } else if (waiters_.size() >= limits::kMaxWaiters ||
             line.waiters.size() >= limits::kMaxWaitersPerKey) {
    refused = Fail(Reason::kLimitReached, "waiters", "as many wait as this daemon allows");
  }
  if (!refused.ok()) {
    if (!waiter.log_key.empty() && !waiter.replay_only) log_.Abandon(waiter.log_key);
    Answer1(reply_to, refused);
    return MayBeIdle(line);
  }

  waiter.id = ++last_id_;
  waiter.line = &line;
  const Ordering ordering = waiter.command.ordering;
  const bool fifo =
      ordering == Ordering::kDefault ? options_.default_fifo : ordering == Ordering::kFifo;
  if (fifo) waiter.number = ++last_number_;
  waiter.began = now_;
  if (!waiter.log_key.empty() && !waiter.replay_only) {
    log_.Begin(waiter.log_key, waiter.digest, UnderWay{.waiter = waiter.id});
  }
  Book(waiter, reply_to);
  if (Session* session = SessionById(waiter.session)) session->waiters.insert(waiter.id);
  if (waiter.waits()) timers_.Add(Timer{waiter.deadline, TimerKind::kWaiter, waiter.id});
  waiters_[waiter.id] = std::move(owned);

  if (waiter.replay_only) {
    line.ops.push_back(TakeOp(waiter, LineOp::Kind::kReplay));
  } else if (line.waiters.empty()) {
    StandInLine(line, waiter);
    PushTry(line);
  } else {
    StandInLine(line, waiter);
    // Somebody is in front. Only the key's owner may pass; a new owner cannot be that. But those in
    // front may just be on their way to a permit or to read, and leave room. And a FIFO place
    // counts from when the store knows it.
    if (!waiter.owner_is_new || waiter.command.mode != Mode::kExclusive || waiter.number > 0) {
      line.ops.push_back(TakeOp(waiter, LineOp::Kind::kProbe));
    } else if (waiter.waits()) {
      TellWaiting(waiter);
    } else {
      AnswerWaiter(waiter, Refusal(waiter, NotAcquiredReason::kBusy));
    }
  }
  Pump(line);
}

LineOp EngineCore::TakeOp(const Waiter& waiter, LineOp::Kind kind) {
  LineOp op;
  op.kind = kind;
  op.ref = HoldRef{waiter.command.name, waiter.command.owner, ids_->NewShortId(),
                   waiter.command.session_id, 1};
  op.op_id = waiter.op_id;
  op.waiter = waiter.id;
  return op;
}

void EngineCore::Book(const Waiter& waiter, ReplyTo caller) {
  waiter_of_[{caller.channel, caller.request_id}] = waiter.id;
  // A session's own stream ends with the session.
  const Session* session = SessionById(waiter.session);
  if (session != nullptr && session->channel == caller.channel) return;
  channel_waiters_[caller.channel].insert(waiter.id);
}

Waiter* EngineCore::WaiterById(LocalId id) {
  const auto it = waiters_.find(id);
  return it == waiters_.end() ? nullptr : it->second.get();
}

void EngineCore::AnswerWaiter(Waiter& waiter, Answer answer) {
  AnswerAll(waiter.callers, answer);
  RemoveWaiter(waiter);
}

void EngineCore::RemoveWaiter(Waiter& waiter, bool wake_next) {
  Line& line = *waiter.line;
  const bool was_head = waiter.in_line && line.waiters.front() == waiter.id;
  ForgetWaiter(waiter);
  // Whoever stands in front now may never have tried. Behind a hold that nobody
  // can join that can wait for its release, if there is at least a retry to come.
  const bool may_wait = HeldAlone(line) && !line.retry_at.is_infinite();
  if (wake_next && was_head && !may_wait) Wake(line);
  MayBeIdle(line);
  Pump(line);
}

void EngineCore::ForgetWaiter(Waiter& waiter) {
  Line& line = *waiter.line;
  const LocalId id = waiter.id;
  for (const auto& [to, received] : waiter.callers) {
    waiter_of_.erase({to.channel, to.request_id});
    const auto of_channel = channel_waiters_.find(to.channel);
    if (of_channel == channel_waiters_.end()) continue;
    of_channel->second.erase(id);
    if (of_channel->second.empty()) channel_waiters_.erase(of_channel);
  }
  ForgetWait(waiter);
  if (Session* session = SessionById(waiter.session)) session->waiters.erase(id);
  // Where it had been granted, OnGranted has put the answer into the log by now.
  if (!waiter.log_key.empty() && !waiter.replay_only) log_.Abandon(waiter.log_key);
  LeaveLine(line, waiter);
  waiters_.erase(id);
  for (auto op = line.ops.begin(); op != line.ops.end();) {
    const auto here = op++;
    if (here->waiter == id) AbandonOp(line, here);
  }
}

void EngineCore::Handle(Cancel command) {
  const auto it = waiter_of_.find({command.target.channel, command.target.request_id});
  if (it == waiter_of_.end()) return CancelSet(command.target);
  Waiter& waiter = *WaiterById(it->second);
  const absl::Status cancelled = Fail(Reason::kCancelled, "", "the caller cancelled the command");
  if (waiter.callers.size() == 1) return AnswerWaiter(waiter, cancelled);
  // A retry of the same command still waits for it.
  Answer1(command.target, cancelled);
  const auto gone =
      std::remove_if(waiter.callers.begin(), waiter.callers.end(), [&](const Caller& caller) {
        return caller.to.channel == command.target.channel &&
               caller.to.request_id == command.target.request_id;
      });
  waiter.callers.erase(gone, waiter.callers.end());
  waiter_of_.erase(it);
}

void EngineCore::OnWaiterTimer(LocalId id) {
  Waiter* waiter = WaiterById(id);
  if (waiter == nullptr) return;
  if (!store_up_ || waiter->line->blocked) {
    AnswerWaiter(*waiter, StoreUnreachable());
  } else if (waiter->saw_grace && grace_until_ > now_) {
    AnswerWaiter(*waiter, GraceStatus());
  } else {
    AnswerWaiter(*waiter, Refusal(*waiter, NotAcquiredReason::kWaitExpired));
  }
}

absl::Status EngineCore::StoreUnreachable() {
  return Fail(Reason::kStoreUnreachable, "",
              "the store cannot be reached; whatever this command may have done there is undone");
}

absl::Status EngineCore::StatusOf(const StoreFailure& failure) {
  switch (failure.kind) {
    case StoreFailureKind::kUnreachable:
      return StoreUnreachable();
    case StoreFailureKind::kWrongType:
      return Fail(Reason::kWrongType, "key",
                  "the store holds something that is no lock under this key; it was not touched");
    case StoreFailureKind::kOutOfMemory:
      return Fail(Reason::kStoreOutOfMemory, "", "the store is out of memory; free some and retry");
    case StoreFailureKind::kLimit:
      return Fail(Reason::kLimitReached, "key", failure.message);
    case StoreFailureKind::kOther:
      break;
  }
  return Fail(Reason::kStoreError, "", absl::StrCat("the store answered: ", failure.message));
}

absl::Status EngineCore::GraceStatus() const {
  const absl::Duration remaining = std::max(grace_until_ - now_, absl::ZeroDuration());
  return FailRetryable(
      Reason::kGracePeriod,
      absl::StrCat("the store is in its grace period for another ",
                   DurationText(absl::Ceil(remaining, absl::Seconds(1))),
                   ": it is new, was restarted or lost data, and grants nothing until every lock "
                   "of its earlier life is over"),
      remaining);
}

NotAcquired EngineCore::Refusal(const Waiter& waiter, NotAcquiredReason reason) {
  const Line& line = *waiter.line;
  const size_t others = line.waiters.size() - (waiter.in_line ? 1 : 0);
  return NotAcquired{reason, HoldersOf(line), static_cast<uint32_t>(others), {}};
}

std::vector<HolderState> EngineCore::HoldersOf(const Line& line) const {
  // Beside readers and permits of ours there may be others: the store knows all of them.
  if (line.holds.empty() || (!HeldAlone(line) && !line.last_holders.empty())) {
    return line.last_holders;
  }
  std::vector<HolderState> holders;
  for (const LocalId id : line.holds) {
    if (holders.size() == limits::kMaxHoldersInAnswer) break;
    const Hold& hold = *holds_.at(id);
    holders.push_back(HolderState{hold.ref.owner, hold.ref.hold_id, hold.ref.session, hold.mode,
                                  hold.count, hold.note, now_ - hold.granted,
                                  std::max(hold.lease_end - now_, absl::ZeroDuration()), false});
  }
  return holders;
}

bool EngineCore::HeldAlone(const Line& line) const {
  return !line.holds.empty() && holds_.at(line.holds.front())->mode == Mode::kExclusive;
}

Hold* EngineCore::HoldOf(LocalId session, const Line& line, absl::string_view owner) {
  if (session == 0) return nullptr;
  for (const LocalId id : line.holds) {
    Hold& hold = *HoldById(id);
    if (hold.session == session && hold.ref.owner == owner) return &hold;
  }
  return nullptr;
}

}  // namespace holdfast::engine
