// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/validate.h"

namespace holdfast::engine {

void EngineCore::Handle(OpenSession command) {
  absl::Status valid = Validate(command, options_);
  if (valid.ok() && draining_) {
    valid = Fail(Reason::kDraining, "", "the daemon is shutting down; use another");
  }
  if (valid.ok() && sessions_.size() >= limits::kMaxSessions) {
    valid = Fail(Reason::kLimitReached, "sessions", "this daemon has as many sessions as it may");
  }
  if (!valid.ok()) return Send(command.head.reply_to.channel, EndStream{valid});

  auto session = std::make_unique<Session>();
  session->id = ++last_id_;
  session->session_id = ids_->NewShortId();
  session->channel = command.head.reply_to.channel;
  session->principal = std::move(command.head.principal);
  session->client_name = std::move(command.client_name);
  session->peer = std::move(command.peer);
  session->ttl = command.ttl.value_or(limits::kDefaultTtl);
  session->lease = command.lease.value_or(std::min(options_.default_lease, options_.max_lease));
  session->opened = now_;
  session->last_ping = command.head.received;
  ArmSession(*session);
  Send(session->channel, SessionOpened{session->session_id, session->ttl, session->lease});
  session_ids_[session->session_id] = session->id;
  session_channels_[session->channel] = session->id;
  session_order_.insert(session->id);
  sessions_[session->id] = std::move(session);
}

void EngineCore::Handle(Ping command) {
  Session* session = SessionOfChannel(command.head.reply_to.channel);
  if (session == nullptr) return;  // ended meanwhile: its stream is being ended too
  session->last_ping = std::max(session->last_ping, command.head.received);
  std::optional<absl::Duration> valid_for;
  for (const LocalId id : session->holds) {
    const Hold& hold = *HoldById(id);
    // Max hold bounds this hold alone, by what its grant said.
    if (hold.partial || hold.lost || hold.being_released() || hold.at_max_hold()) continue;
    const absl::Duration remaining = hold.lease_end - command.head.received;
    if (!valid_for.has_value() || remaining < *valid_for) {
      valid_for = std::max(remaining, absl::ZeroDuration());
    }
  }
  Send(session->channel, Pong{command.head.reply_to.request_id, valid_for});
}

void EngineCore::Handle(ChannelClosed command) {
  if (Session* session = SessionOfChannel(command.channel)) {
    const bool may_live =
        command.how == StreamEnd::kFellSilent && session->ttl > absl::ZeroDuration();
    session_channels_.erase(command.channel);
    session->channel = 0;
    if (!may_live) EndSession(*session, absl::OkStatus());
    return CheckDrained();
  }
  StopWatching(command.channel);
  OnSetChannelClosed(command.channel);
  const auto waiting = channel_waiters_.find(command.channel);
  if (waiting == channel_waiters_.end()) return;
  const absl::btree_set<LocalId> ids = waiting->second;
  for (const LocalId id : ids) {
    Waiter& waiter = *WaiterById(id);
    const auto closed =
        std::remove_if(waiter.callers.begin(), waiter.callers.end(), [&](const Caller& caller) {
          if (caller.to.channel != command.channel) return false;
          waiter_of_.erase({caller.to.channel, caller.to.request_id});
          return true;
        });
    waiter.callers.erase(closed, waiter.callers.end());
    if (waiter.callers.empty()) RemoveWaiter(waiter);
  }
  channel_waiters_.erase(command.channel);
  CheckDrained();
}

void EngineCore::Handle(SlowReader command) {
  if (Session* session = SessionOfChannel(command.channel)) {
    EndSession(*session, Fail(Reason::kSlowReader, "",
                              "the session was ended: its client does not read its events"));
  }
  CheckDrained();
}

Session* EngineCore::FindSession(absl::string_view session_id) {
  const auto it = session_ids_.find(session_id);
  return it == session_ids_.end() ? nullptr : SessionById(it->second);
}

Session* EngineCore::SessionOfChannel(uint64_t channel) {
  const auto it = session_channels_.find(channel);
  return it == session_channels_.end() ? nullptr : SessionById(it->second);
}

Session* EngineCore::SessionById(LocalId id) {
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

absl::Status EngineCore::OwnSession(ReplyTo reply_to, std::string* session_id, Session** session) {
  *session = SessionOfChannel(reply_to.channel);
  if (*session == nullptr) return absl::OkStatus();
  if (!session_id->empty() && *session_id != (*session)->session_id) {
    return Fail(Reason::kInvalidField, "session_id",
                "session_id must be empty or the stream's own session");
  }
  *session_id = (*session)->session_id;
  return absl::OkStatus();
}

absl::Status EngineCore::NamedSession(const std::string& session_id, Session** session) {
  if (*session == nullptr && session_id.empty()) return absl::OkStatus();
  if (*session == nullptr) *session = FindSession(session_id);
  if (*session == nullptr) {
    return Fail(Reason::kSessionNotFound, "session_id",
                "no such session on this daemon: open one, or ask the daemon that opened it");
  }
  if (!(*session)->closing) return absl::OkStatus();
  return Fail(Reason::kSessionClosed, "session_id", "an operator closed the session; open another");
}

void EngineCore::ArmSession(Session& session) {
  timers_.Add(Timer{session.ends(), TimerKind::kSession, session.id});
}

void EngineCore::OnSessionTimer(LocalId id) {
  Session* session = SessionById(id);
  if (session == nullptr) return;
  if (session->ends() > now_) return ArmSession(*session);  // it pinged since
  EndSession(*session, Fail(Reason::kSessionExpired, "",
                            "the session's ttl passed without a ping: its holds are over"));
}

void EngineCore::FailWaiters(Session& session, const absl::Status& status) {
  const absl::Status ended = status.ok() ? Fail(Reason::kSessionNotFound, "session_id",
                                                "the session ended while this command waited")
                                         : status;
  const absl::btree_set<LocalId> sets = session.sets;
  for (const LocalId set_id : sets) {
    EndSet(*SetById(set_id), ended);
  }
  const absl::btree_set<LocalId> waiters = session.waiters;
  for (const LocalId waiter_id : waiters) {
    Waiter& waiter = *WaiterById(waiter_id);
    const bool on_stream =
        waiter.callers.size() == 1 && waiter.callers[0].to.channel == session.channel;
    if (!on_stream || !status.ok()) AnswerAll(waiter.callers, ended);
    RemoveWaiter(waiter);
  }
}

void EngineCore::EndSession(Session& session, const absl::Status& status) {
  FailWaiters(session, status);
  const absl::btree_set<LocalId> holds = session.holds;
  for (const LocalId hold_id : holds) {
    Hold& hold = *HoldById(hold_id);
    if (session.channel != 0 && !status.ok() && !hold.lost && !hold.partial) {
      Send(session.channel, Lost{hold.ref.name, hold.ref.owner, hold.ref.hold_id, hold.token,
                                 LossReason::kSessionClosed});
    }
    GiveBack(hold);
  }
  ForgetSession(session, status);
}

void EngineCore::ForgetSession(Session& session, const absl::Status& status) {
  const LocalId id = session.id;
  if (session.channel != 0) {
    if (!status.ok()) Send(session.channel, EndStream{status});
    session_channels_.erase(session.channel);
  }
  session_ids_.erase(session.session_id);
  session_order_.erase(id);
  sessions_.erase(id);
}

}  // namespace holdfast::engine
