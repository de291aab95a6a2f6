// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/match.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"

namespace holdfast::engine {
namespace {

// How long a line waits for kUp before it asks a store that did not answer again.
constexpr absl::Duration kBlockedRetry = absl::Milliseconds(200);

}  // namespace

Line& EngineCore::LineOf(const KeyName& name) {
  const auto [it, is_new] = line_ids_.try_emplace(name, 0);
  if (is_new) {
    it->second = ++last_id_;
    auto line = std::make_unique<Line>();
    line->id = it->second;
    line->name = name;
    lines_[line->id] = std::move(line);
  }
  return *lines_.at(it->second);
}

Line* EngineCore::LineById(LocalId id) {
  const auto it = lines_.find(id);
  return it == lines_.end() ? nullptr : it->second.get();
}

void EngineCore::FinishInput() {
  while (!set_answers_.empty()) {
    Reply reply = std::move(set_answers_.front());
    set_answers_.pop_front();
    OnSetAnswer(reply.request_id, reply.result);
    if (set_answers_.empty()) CheckDrained();
  }
  EndClosedSessions();
  for (const LocalId id : std::exchange(maybe_idle_, {})) {
    Line* line = LineById(id);
    if (line == nullptr) continue;
    if (line->subscribed && line->waiters.empty()) {
      line->subscribed = false;
      out_.requests.push_back(StoreRequest{++last_request_, UnsubscribeOp{line->name}});
    }
    if (!line->idle()) continue;
    line_ids_.erase(line->name);
    lines_.erase(id);
  }
}

void EngineCore::Pump(Line& line) {
  if (!store_up_ || line.blocked) return;
  while (!line.ops.empty()) {
    if (line.ops.front().drop_at <= now_) {
      line.ops.pop_front();
    } else if (!SkipProbe(line, line.ops.front())) {
      break;
    }
  }
  if (line.ops.empty()) return MayBeIdle(line);
  LineOp& first = line.ops.front();
  if (first.request != 0) return;
  SendOp(line, first);
  if (!HandsOver(line, first)) return;
  // Release and grant are one step: nobody comes between them, and it costs one round trip. Those
  // who only ask whether they are the owner already can wait.
  LineOp* const queued = QueuedTry(line);
  const auto at = std::find_if(line.ops.begin(), line.ops.end(),
                               [&](const LineOp& op) { return &op == queued; });
  const auto second = std::next(line.ops.begin());
  if (queued != nullptr) {
    line.ops.splice(second, line.ops, at);
  } else {
    const Waiter& head = *WaiterById(line.waiters.front());
    line.ops.insert(second, TakeOp(head, LineOp::Kind::kTry));
  }
  SendOp(line, *std::next(line.ops.begin()));
}

bool EngineCore::HandsOver(const Line& line, const LineOp& op) const {
  if (op.takes() || op.kind == LineOp::Kind::kPassOn) return false;
  if (line.waiters.empty() || !MayKeepAmongOwn(line)) return false;
  // What may have been carried out has to be settled before anything else happens to the key: the
  // same waiter's probe, undone later, would take its grant back.
  const bool others_can_wait =
      std::all_of(std::next(line.ops.begin()), line.ops.end(), [](const LineOp& other) {
        return other.kind == LineOp::Kind::kTry ||
               (other.kind == LineOp::Kind::kProbe && !other.maybe_applied);
      });
  if (!others_can_wait) return false;
  // Where holds of ours remain, the key will not be free, though there may be a permit. Of a bare
  // lease that is not known.
  const bool permit = waiters_.at(line.waiters.front())->command.mode == Mode::kPermit;
  return std::all_of(line.holds.begin(), line.holds.end(), [&](LocalId id) {
    const Hold& hold = *holds_.at(id);
    return id == op.hold ? hold.being_released() : permit && hold.mode == Mode::kPermit;
  });
}

void EngineCore::SendOp(Line& line, LineOp& op) {
  Pending pending;
  pending.kind = Pending::Kind::kLine;
  pending.line = line.id;
  op.sent = now_;
  if (op.kind == LineOp::Kind::kPassOn) {
    op.request = Submit(PassOnOp{line.name, op.place, op.pass_on}, std::move(pending));
    return;
  }
  if (!op.takes()) {
    const ReleaseKind kind = op.kind == LineOp::Kind::kRelease    ? ReleaseKind::kOne
                             : op.kind == LineOp::Kind::kGiveBack ? ReleaseKind::kAll
                                                                  : ReleaseKind::kUndo;
    op.request = Submit(ReleaseOp{op.ref, kind, op.op_id}, std::move(pending));
    return;
  }
  const Waiter& waiter = *WaiterById(op.waiter);
  // Those in front got their permits, or read: it is this one's turn already.
  const bool joins = waiter.command.mode != Mode::kExclusive && line.waiters.front() == waiter.id;
  if (op.kind == LineOp::Kind::kProbe && joins) op.kind = LineOp::Kind::kTry;
  AcquireOp take;
  take.hold = op.ref;
  take.mode = waiter.command.mode;
  take.limit = waiter.command.limit;
  take.refuse_reentry = waiter.command.reentry == Reentry::kRefuse;
  take.only_reentry = op.kind == LineOp::Kind::kProbe;
  take.replay_only = op.kind == LineOp::Kind::kReplay;
  take.will_wait = waiter.waits() || line.waiters.size() > 1;
  take.others_wait = line.waiters.size() > 1;
  SetPlace(line, waiter, op, take);
  take.untold = waiter.of_set;
  take.lease = waiter.lease;
  take.max_hold = waiter.max_hold;
  take.min_hold = waiter.command.min_hold;
  take.release_delay = ReleaseDelayOf(line.name);
  take.note = waiter.command.note;
  take.op_id = op.op_id;
  op.request = Submit(std::move(take), std::move(pending));
}

absl::Duration EngineCore::ReleaseDelayOf(const KeyName& name) const {
  const ReleaseDelay* best = nullptr;
  for (const ReleaseDelay& rule : options_.release_delays) {
    if (rule.ns != name.ns || !absl::StartsWith(name.key, rule.prefix)) continue;
    if (best == nullptr || rule.prefix.size() >= best->prefix.size()) best = &rule;
  }
  return best == nullptr ? absl::ZeroDuration() : best->delay;
}

bool EngineCore::SkipProbe(Line& line, const LineOp& op) {
  if (op.kind != LineOp::Kind::kProbe || op.request != 0 || op.maybe_applied) return false;
  Waiter& waiter = *WaiterById(op.waiter);
  if (!waiter.owner_is_new || line.waiters.front() == waiter.id) return false;
  if (waiter.number > 0 && !waiter.in_store) return false;
  if (waiter.waits()) {
    TellWaiting(waiter);
    line.ops.pop_front();
  } else {
    AnswerAll(waiter.callers, Refusal(waiter, NotAcquiredReason::kBusy));
    ForgetWaiter(waiter);  // and its probe
  }
  return true;
}

LineOp* EngineCore::QueuedTry(Line& line) {
  for (LineOp& op : line.ops) {
    if (op.kind == LineOp::Kind::kTry) return &op;
    // Becomes one when it is sent.
    const bool of_head = op.kind == LineOp::Kind::kProbe && op.waiter == line.waiters.front();
    if (of_head && op.request == 0 && WaiterById(op.waiter)->command.mode != Mode::kExclusive) {
      return &op;
    }
  }
  return nullptr;
}

void EngineCore::PushTry(Line& line) {
  line.ops.push_back(TakeOp(*WaiterById(line.waiters.front()), LineOp::Kind::kTry));
}

void EngineCore::Wake(Line& line) {
  if (line.waiters.empty()) return MayBeIdle(line);
  if (const LineOp* queued = QueuedTry(line)) {
    // One that is at the store already may have come too early.
    if (queued->request != 0) line.try_again = true;
    return;
  }
  PushTry(line);
}

void EngineCore::WakeAll() {
  for (const LocalId id : InOrder(lines_)) {
    Line& line = *LineById(id);
    Wake(line);
    Pump(line);
  }
}

void EngineCore::RetryAt(Line& line, BootTime at) {
  line.retry_at = at;
  ArmLine(line, at);
}

void EngineCore::ArmLine(Line& line, BootTime at) {
  if (at >= line.timer_at) return;
  line.timer_at = at;
  timers_.Add(Timer{at, TimerKind::kLine, line.id});
}

void EngineCore::OnLineTimer(LocalId id) {
  Line* line = LineById(id);
  if (line == nullptr || line->timer_at > now_) return;  // an older timer of the same line
  line->timer_at = BootTime::Infinite();
  CheckClaim(*line);
  if (line->retry_at > now_) {
    ArmLine(*line, line->retry_at);
    return Pump(*line);
  }
  line->retry_at = BootTime::Infinite();
  line->blocked = false;
  Wake(*line);
  Pump(*line);
}

void EngineCore::Watch(Line& line) {
  // What this engine alone holds it also releases: no need to hear of it.
  if (line.subscribed || line.waiters.empty() || HeldAlone(line) || !store_up_) return;
  line.subscribed = true;
  Pending pending;
  pending.kind = Pending::Kind::kSubscribe;
  pending.line = line.id;
  Submit(SubscribeOp{line.name}, std::move(pending));
}

void EngineCore::OnLineReply(Line& line, StoreReply& reply) {
  const auto at = std::find_if(line.ops.begin(), line.ops.end(),
                               [&](const LineOp& op) { return op.request == reply.id; });
  if (at == line.ops.end()) return;
  at->request = 0;
  if (const auto* failure = std::get_if<StoreFailure>(&reply.result);
      failure != nullptr && failure->kind == StoreFailureKind::kUnreachable) {
    return OnUnreachable(line, at, *failure);
  }
  LineOp op = std::move(*at);
  line.ops.erase(at);
  // A try in the same step has seen what the release did.
  const bool try_again = line.try_again;
  const bool handed_over = !op.takes() && !line.ops.empty() && line.ops.front().request != 0;
  switch (op.kind) {
    case LineOp::Kind::kTry:
    case LineOp::Kind::kProbe:
    case LineOp::Kind::kReplay:
      OnTakeReply(line, op, reply);
      // Woken meanwhile, or the head that this was for has gone.
      if (op.kind == LineOp::Kind::kTry && std::exchange(line.try_again, false)) Wake(line);
      break;
    case LineOp::Kind::kRelease:
      OnReleaseReply(line, std::move(op), reply);
      break;
    case LineOp::Kind::kGiveBack:
    case LineOp::Kind::kUndo:
      OnGiveBackReply(line, op, reply);
      break;
    case LineOp::Kind::kPassOn:
      OnPassOnReply(line, op, reply);
      break;
  }
  if (handed_over) line.try_again = try_again;
  MayBeIdle(line);
  Pump(line);
}

void EngineCore::OnUnreachable(Line& line, std::list<LineOp>::iterator at,
                               const StoreFailure& failure) {
  LineOp& op = *at;
  op.maybe_applied = op.maybe_applied || failure.maybe_applied;
  line.blocked = true;
  RetryAt(line, now_ + kBlockedRetry);
  if (op.takes()) {
    Waiter* waiter = WaiterById(op.waiter);
    if (op.maybe_applied) Entered(line, op);
    if (waiter == nullptr) {
      AbandonOp(line, at);
    } else if (!waiter->waits() || waiter->deadline <= now_) {
      AnswerWaiter(*waiter, StoreUnreachable());
    }
    return;
  }
  if (op.kind != LineOp::Kind::kRelease) return;  // owed, or about a line: until it is old
  AnswerAll(std::exchange(op.callers, {}),
            Fail(Reason::kStoreUnreachable, "",
                 "the store cannot be reached: the release may or may not have been done; retry "
                 "with the same command_id"));
  if (op.hold != 0) return;  // owed: it is done when the store is back
  if (!op.log_key.empty()) log_.Abandon(op.log_key);
  line.ops.erase(at);
  MayBeIdle(line);
}

void EngineCore::AbandonOp(Line& line, std::list<LineOp>::iterator op) {
  op->waiter = 0;
  if (op->request != 0) return;  // decided when its answer comes
  if (op->kind != LineOp::Kind::kReplay && op->maybe_applied) {
    op->kind = LineOp::Kind::kUndo;
    op->drop_at = now_ + 2 * options_.max_lease;
    return;
  }
  line.ops.erase(op);
  MayBeIdle(line);
}

void EngineCore::FailTriesThatDoNotWait(Line& line) {
  std::vector<LocalId> failed;
  for (const LineOp& op : line.ops) {
    const Waiter* waiter = op.takes() ? WaiterById(op.waiter) : nullptr;
    if (waiter != nullptr && !waiter->waits()) failed.push_back(waiter->id);
  }
  for (const LocalId id : failed) {
    if (Waiter* waiter = WaiterById(id)) AnswerWaiter(*waiter, StoreUnreachable());
  }
}

void EngineCore::OnStoreUp() {
  store_up_ = true;
  for (auto& [id, line] : lines_) line->blocked = false;
  WakeAll();
  for (const LocalId id : InOrder(holds_)) {
    Hold& hold = *HoldById(id);
    if (hold.lost || hold.renewing || !hold.next_renew.is_infinite()) continue;
    hold.next_renew = now_;
    ArmHold(hold);
  }
}

void EngineCore::OnStoreDown() {
  store_up_ = false;
  for (const LocalId id : InOrder(lines_)) {
    Line& line = *LineById(id);
    line.subscribed = false;
    FailTriesThatDoNotWait(line);
  }
}

}  // namespace holdfast::engine
