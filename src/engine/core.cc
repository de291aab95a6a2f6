// SPDX-License-Identifier: Apache-2.0
#include "src/engine/core.h"

#include "absl/strings/str_cat.h"

namespace holdfast::engine {

EngineCore::EngineCore(EngineOptions options, IdSource* ids)
    : options_(options), ids_(ids), life_(ids->NewShortId().substr(0, 8)) {}

void EngineCore::Send(uint64_t channel, decltype(Event::body) body) {
  out_.events.push_back(Event{channel, std::move(body)});
}

void EngineCore::Answer1(ReplyTo to, Answer answer) {
  if (to.channel == kSetChannel) {
    set_answers_.push_back(Reply{to.request_id, std::move(answer)});
    return;
  }
  Send(to.channel, Reply{to.request_id, std::move(answer)});
}

void EngineCore::AnswerAll(absl::Span<const Caller> callers, const Answer& answer) {
  for (const Caller& caller : callers) Answer1(caller.to, answer);
}

uint64_t EngineCore::Submit(decltype(StoreRequest::op) op, Pending pending) {
  const uint64_t id = ++last_request_;
  pending.sent = now_;
  pending_.emplace(id, std::move(pending));
  out_.requests.push_back(StoreRequest{id, std::move(op)});
  return id;
}

void EngineCore::TakeOutput(Output* out) {
  out->requests.clear();
  out->events.clear();
  std::swap(*out, out_);
}

std::string EngineCore::EngineOpId() {
  // Short, so that copies of it need no allocation for the first 16 million.
  return absl::StrCat("e", life_, absl::Hex(++last_op_));
}

void EngineCore::OnReply(StoreReply& reply) {
  auto found = pending_.extract(reply.id);
  if (found.empty()) return;  // answered twice: the first counted
  Pending pending = std::move(found.mapped());
  switch (pending.kind) {
    case Pending::Kind::kLine:
      if (Line* line = LineById(pending.line)) OnLineReply(*line, reply);
      break;
    case Pending::Kind::kSubscribe:
      if (Line* line = LineById(pending.line)) {
        if (std::holds_alternative<StoreFailure>(reply.result)) {
          line->subscribed = false;
        } else {
          Wake(*line);  // what was released before is not announced
        }
        Pump(*line);
      }
      break;
    case Pending::Kind::kWatchdog:
      OnWatchdogReply(pending.hold, pending.sent, reply);
      break;
    case Pending::Kind::kClientRenew:
      OnClientRenewReply(std::move(pending), reply);
      break;
    case Pending::Kind::kInspect:
      OnInspectReply(pending, reply);
      break;
    case Pending::Kind::kList:
      OnListReply(pending, reply);
      break;
    case Pending::Kind::kLook:
      OnLookReply(pending, reply);
      break;
    case Pending::Kind::kWatch:
      OnWatchReply(pending, reply);
      break;
    case Pending::Kind::kForce:
      OnForceReply(pending, reply);
      break;
  }
  CheckDrained();
}

void EngineCore::OnStoreEvent(const StoreEvent& event) {
  switch (event.kind) {
    case StoreEvent::Kind::kUp:
      OnStoreUp();
      ResumeWatches();
      break;
    case StoreEvent::Kind::kDown:
      OnStoreDown();
      SuspendWatches();
      break;
    case StoreEvent::Kind::kWake:
      OnWake(event);
      break;
    case StoreEvent::Kind::kNews:
      OnNews(event);
      break;
    case StoreEvent::Kind::kNewsMissed:
      OnNewsMissed();
      break;
    case StoreEvent::Kind::kAudience:
      audience_ = event.watched;
      break;
    case StoreEvent::Kind::kGrace:
      grace_until_ = now_ + event.remaining;
      if (event.remaining <= absl::ZeroDuration()) WakeAll();
      break;
  }
  CheckDrained();
}

void EngineCore::Advance() {
  while (const std::optional<Timer> timer = timers_.TakeDue(now_)) {
    switch (timer->kind) {
      case TimerKind::kSession:
        OnSessionTimer(timer->id);
        break;
      case TimerKind::kHold:
        OnHoldTimer(timer->id);
        break;
      case TimerKind::kWaiter:
        OnWaiterTimer(timer->id);
        break;
      case TimerKind::kLine:
        OnLineTimer(timer->id);
        break;
      case TimerKind::kSet:
        OnSetTimer(timer->id);
        break;
      case TimerKind::kDrain:
        OnDrainTimer();
        break;
    }
  }
  CheckDrained();
}

}  // namespace holdfast::engine
