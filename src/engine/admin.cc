// SPDX-License-Identifier: Apache-2.0
//
// What an operator does. Nobody's hold is granted on by it before its holder was told and has
// acknowledged that, or its validity is over, but for ForceRelease{immediate}.
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/validate.h"

namespace holdfast::engine {
namespace {

absl::Status ClosedByOperator() {
  return Fail(Reason::kSessionClosed, "", "an operator closed the session");
}

}  // namespace

SessionState EngineCore::StateOf(const Session& session) const {
  return {.session_id = session.session_id,
          .client_name = session.client_name,
          .principal = session.principal,
          .peer = session.peer,
          .age = now_ - session.opened,
          .since_last_ping = std::max(now_ - session.last_ping, absl::ZeroDuration()),
          .ttl = session.ttl,
          .holds = static_cast<uint32_t>(session.holds.size()),
          .waiting = static_cast<uint32_t>(session.waiters.size()),
          .connected = session.channel != 0,
          .closing = session.closing};
}

void EngineCore::Handle(ListSessions command) {
  SessionsAnswer answer;
  for (auto it = session_order_.upper_bound(command.after); it != session_order_.end(); ++it) {
    if (answer.sessions.size() == limits::kSessionsPerPage) {
      answer.next = *std::prev(it);
      break;
    }
    answer.sessions.push_back(StateOf(*SessionById(*it)));
  }
  Answer1(command.head.reply_to, std::move(answer));
}

void EngineCore::Handle(CloseSession command) {
  const ReplyTo reply_to = command.head.reply_to;
  if (absl::Status valid = Validate(command); !valid.ok()) return Answer1(reply_to, valid);
  Session* session = FindSession(command.session_id);
  if (session == nullptr) {
    return Answer1(reply_to, Fail(Reason::kSessionNotFound, "session_id",
                                  "no such session on this daemon: it has ended, or is another "
                                  "daemon's"));
  }
  session->closing = true;
  maybe_closed_.push_back(session->id);
  FailWaiters(*session, ClosedByOperator());
  CloseSessionAnswer answer;
  answer.holds = static_cast<uint32_t>(session->holds.size());
  for (const LocalId id : session->holds) {
    Hold& hold = *HoldById(id);
    if (hold.partial) continue;  // nobody was told of it, and it is being undone
    if (!hold.lost) Lose(hold, LossReason::kSessionClosed, /*gone=*/false);
    // Of a client that cannot be told, the session ends first.
    const BootTime over =
        session->channel != 0 ? hold.lease_end : std::min(hold.lease_end, session->ends());
    answer.over_within = std::max(answer.over_within, over - now_);
  }
  Answer1(reply_to, answer);
}

void EngineCore::EndClosedSessions() {
  for (const LocalId id : std::exchange(maybe_closed_, {})) {
    Session* session = SessionById(id);
    if (session != nullptr && session->holds.empty()) ForgetSession(*session, ClosedByOperator());
  }
}

void EngineCore::Handle(ForceRelease command) {
  absl::Status valid = Validate(command);
  if (valid.ok() && !store_up_) {
    valid = Fail(Reason::kStoreUnreachable, "", "the store cannot be reached; nothing was changed");
  }
  if (!valid.ok()) return Answer1(command.head.reply_to, valid);
  Pending pending;
  pending.kind = Pending::Kind::kForce;
  pending.callers = {Caller{command.head.reply_to, command.head.received}};
  pending.immediate = command.immediate;
  // Before a hold of ours is given back, so that the answer counts it.
  Submit(ForceOp{command.name, command.hold_id, command.immediate}, std::move(pending));
  TellForced(command);
}

void EngineCore::TellForced(const ForceRelease& command) {
  const auto it = line_ids_.find(command.name);
  if (it == line_ids_.end()) return;
  const std::vector<LocalId> holds = LineById(it->second)->holds;
  for (const LocalId id : holds) {
    Hold& hold = *HoldById(id);
    if (!command.hold_id.empty() && hold.ref.hold_id != command.hold_id) continue;
    if (hold.partial) {
      GiveBack(hold);
      continue;
    }
    if (!hold.lost) Lose(hold, LossReason::kForced, /*gone=*/false);
    if (command.immediate) GiveBack(hold);
  }
}

void EngineCore::OnForceReply(const Pending& pending, StoreReply& reply) {
  if (auto* forced = std::get_if<Forced>(&reply.result)) {
    const bool overlap = pending.immediate && forced->holds > 0;
    return AnswerAll(pending.callers, ForceAnswer{std::move(*forced), overlap});
  }
  const auto* failure = std::get_if<StoreFailure>(&reply.result);
  if (failure != nullptr && failure->kind == StoreFailureKind::kUnreachable) {
    return AnswerAll(pending.callers,
                     Fail(Reason::kStoreUnreachable, "",
                          "the store cannot be reached; it may or may not have been done: look at "
                          "the key, and ask again"));
  }
  AnswerAll(pending.callers, failure != nullptr ? StatusOf(*failure) : StoreUnreachable());
}

bool EngineCore::WasForced(const Hold& hold, const Renewed& renewed) const {
  if (renewed.max_hold_remaining == absl::InfiniteDuration()) return false;
  // At the latest, because the answer took some time.
  const BootTime end = now_ + renewed.max_hold_remaining;
  return end + SafetyMargin(renewed.max_hold_remaining) < hold.hard_end;
}

}  // namespace holdfast::engine
