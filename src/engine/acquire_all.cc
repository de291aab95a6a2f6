// SPDX-License-Identifier: Apache-2.0
#include "src/engine/acquire_all.h"

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/times.h"
#include "src/engine/validate.h"

namespace holdfast::engine {
namespace {

absl::Status TooSlow() {
  return Fail(Reason::kStoreUnreachable, "",
              "the store took so long that the keys could not be held together; all is undone");
}

}  // namespace

std::optional<size_t> AcquireSet::Next() const {
  if (!holds_some()) return first;
  for (size_t i = 0; i < members.size(); ++i) {
    if (!members[i].grant.has_value()) return i;
  }
  return std::nullopt;
}

bool AcquireSet::MayWaitFor(size_t member) const {
  return std::none_of(members.begin() + static_cast<std::ptrdiff_t>(member), members.end(),
                      [](const SetMember& later) { return later.grant.has_value(); });
}

Acquire MemberCommand(const AcquireAll& command, size_t asked) {
  const KeyAndMode& key = command.keys[asked];
  return Acquire{.head = command.head,
                 .name = {command.ns, key.key},
                 .owner = command.owner,
                 .session_id = command.session_id,
                 .mode = key.mode,
                 .limit = key.limit,
                 .reentry = command.reentry,
                 .lease = command.lease,
                 .wait = command.wait,
                 .max_hold = command.max_hold,
                 .min_hold = command.min_hold,
                 .feed = command.feed,
                 .ordering = command.ordering,
                 .note = command.note,
                 .traceparent = command.traceparent,
                 .command_id = command.command_id};
}

void EngineCore::Handle(AcquireAll command) {
  const Caller caller{command.head.reply_to, command.head.received};
  Session* session = nullptr;
  absl::Status valid = OwnSession(caller.to, &command.session_id, &session);
  if (valid.ok()) valid = Validate(command, options_);
  if (valid.ok()) valid = NamedSession(command.session_id, &session);
  if (!valid.ok()) return Answer1(caller.to, valid);

  auto owned = std::make_unique<AcquireSet>();
  AcquireSet& set = *owned;
  std::string log_key;
  if (!command.command_id.empty()) {
    log_key = CommandLog::SetKey(command.session_id, command.ns, command.command_id);
    if (AnsweredBefore(command, log_key, set)) return;
  }
  if (draining_ && !set.replay_only) {
    return Answer1(caller.to, Fail(Reason::kDraining, "",
                                   "the daemon is shutting down and grants nothing any more"));
  }
  set.id = ++last_id_;
  if (!log_key.empty() && !set.replay_only) {
    log_.Begin(log_key, DigestOf(command), UnderWay{.set = set.id});  // as the caller sent it
    set.log_key = std::move(log_key);
  }
  set.session = session == nullptr ? 0 : session->id;
  if (session != nullptr) session->sets.insert(set.id);
  set.owner_is_new = command.owner.empty();
  if (set.owner_is_new) command.owner = ids_->NewId();
  set.lease = command.lease.value_or(
      session != nullptr ? session->lease : std::min(options_.default_lease, options_.max_lease));
  set.max_hold = command.max_hold.value_or(options_.default_max_hold);
  if (set.max_hold == absl::ZeroDuration()) set.max_hold = absl::InfiniteDuration();
  set.received = command.head.received;
  set.deadline = set.received + command.wait;
  set.op_id = command.command_id.empty() ? EngineOpId() : absl::StrCat("s", command.command_id);
  for (size_t i = 0; i < command.keys.size(); ++i) set.members.push_back(SetMember{i, {}});
  std::sort(set.members.begin(), set.members.end(), [&](const SetMember& a, const SetMember& b) {
    return command.keys[a.asked].key < command.keys[b.asked].key;
  });
  set.command = std::move(command);
  if (set.waits()) timers_.Add(Timer{set.deadline, TimerKind::kSet, set.id});
  BookSet(set, caller);
  sets_[set.id] = std::move(owned);
  GoOn(set);
}

AcquireSet* EngineCore::SetById(LocalId id) {
  const auto it = sets_.find(id);
  return it == sets_.end() ? nullptr : it->second.get();
}

void EngineCore::BookSet(AcquireSet& set, const Caller& caller) {
  set.callers.push_back(caller);
  set_of_[{caller.to.channel, caller.to.request_id}] = set.id;
  channel_sets_[caller.to.channel].insert(set.id);
}

void EngineCore::GoOn(AcquireSet& set) {
  const std::optional<size_t> next = set.Next();
  if (next.has_value() && now_ < set.partial_until) return TryMember(set, *next);
  if (!next.has_value() && AllStillHeld(set)) return Complete(set);
  if (set.waits() && now_ < set.deadline) return StartOver(set, next.value_or(0));
  EndSet(set, TooSlow());
}

void EngineCore::StartOver(AcquireSet& set, size_t first) {
  GiveBackMembers(set);
  set.first = first;
  TryMember(set, first);
}

void EngineCore::TryMember(AcquireSet& set, size_t member) {
  const bool some = set.holds_some();
  auto waiter = std::make_unique<Waiter>();
  waiter->command = MemberCommand(set.command, set.members[member].asked);
  waiter->deadline = some ? std::min(set.deadline, set.partial_until) : set.deadline;
  const bool may_wait = set.waits() && (!some || set.MayWaitFor(member));
  waiter->command.wait = may_wait ? waiter->deadline - now_ : absl::ZeroDuration();
  waiter->command.feed = absl::ZeroDuration();  // begins when the set is complete
  waiter->command.command_id.clear();
  // Both shall count from the complete set; what is told says so.
  if (set.command.min_hold > absl::ZeroDuration()) waiter->command.min_hold += limits::kSetSlack;
  waiter->max_hold = set.max_hold + limits::kSetSlack;
  waiter->lease = set.lease;
  waiter->session = set.session;
  waiter->of_set = true;
  waiter->set_holds_some = some;
  waiter->owner_is_new = set.owner_is_new;
  waiter->replay_only = set.replay_only;
  waiter->known_forgotten = set.known_forgotten;
  waiter->op_id = set.op_id;
  set.trying = member;
  set.request = ++last_id_;
  set_requests_[set.request] = set.id;
  waiter->callers = {Caller{{kSetChannel, set.request}, set.received}};
  StartWaiter(std::move(waiter));
}

void EngineCore::OnSetAnswer(uint64_t request, Answer& answer) {
  const auto found = set_requests_.find(request);
  if (found == set_requests_.end()) return;
  AcquireSet& set = *SetById(found->second);
  set_requests_.erase(found);
  Grant* grant = std::get_if<Grant>(&answer);
  if (grant == nullptr) return OnMemberRefused(set, answer);
  if (!set.replay_only) {
    const BootTime until = set.SentOf(*grant) + set.PartialBound();
    set.partial_until = std::min(set.partial_until, until);
    timers_.Add(Timer{set.partial_until, TimerKind::kSet, set.id});
  }
  set.members[set.trying].grant = std::move(*grant);
  GoOn(set);
}

void EngineCore::OnMemberRefused(AcquireSet& set, const Answer& answer) {
  const bool again = set.waits() && now_ < set.deadline && set.holds_some() && !set.replay_only;
  const size_t asked = set.members[set.trying].asked;
  if (const auto* busy = std::get_if<NotAcquired>(&answer)) {
    if (again) return StartOver(set, set.trying);
    NoneGranted refusal{{set.command.ns, set.command.keys[asked].key}, *busy};
    if (busy->reason != NotAcquiredReason::kDeadlock) {
      refusal.why.reason = set.waits() ? NotAcquiredReason::kWaitExpired : NotAcquiredReason::kBusy;
    }
    return EndSet(set, refusal);
  }
  const auto& status = std::get<absl::Status>(answer);
  if (again && status.code() == absl::StatusCode::kUnavailable) return StartOver(set, set.trying);
  EndSet(set, OfKey(status, asked));
}

void EngineCore::OnSetTimer(LocalId id) {
  AcquireSet* set = SetById(id);
  if (set == nullptr) return;
  const bool wait_over = set->waits() && set->deadline <= now_;
  if (!wait_over && set->partial_until > now_) return;
  const auto trying = waiter_of_.find({kSetChannel, set->request});
  if (trying == waiter_of_.end()) return;  // its answer is being worked on
  if (set->waits()) return OnWaiterTimer(trying->second);
  AnswerWaiter(*WaiterById(trying->second), TooSlow());
}

bool EngineCore::AllStillHeld(const AcquireSet& set) {
  if (set.replay_only) return true;
  return std::all_of(set.members.begin(), set.members.end(), [&](const SetMember& member) {
    const Grant& grant = *member.grant;
    if (set.session == 0) {
      return set.SentOf(grant) + grant.lease - SafetyMargin(set.lease) > now_;
    }
    const Hold* hold = FindHold(grant.hold_id);
    return hold != nullptr && !hold->lost && !hold->being_released() && ValidityEnd(*hold) > now_;
  });
}

void EngineCore::Complete(AcquireSet& set) {
  BootTime complete = set.received;
  for (const SetMember& member : set.members) {
    complete = std::max(complete, set.SentOf(*member.grant));
  }
  LoggedAnswer logged{AllGranted{}, set.received, 0, {}};
  AllGranted& all = std::get<AllGranted>(logged.answer);
  all.grants.resize(set.members.size());
  logged.holds.resize(set.session != 0 ? set.members.size() : 0);
  for (SetMember& member : set.members) {
    CompleteMember(set, *member.grant, complete);
    TellGranted(set, member);
    if (set.session != 0) logged.holds[member.asked] = FindHold(member.grant->hold_id)->id;
    all.grants[member.asked] = std::move(*member.grant);
  }
  for (const Caller& caller : set.callers) {
    AllGranted copy = all;
    for (Grant& grant : copy.grants) {
      const BootTime sent = set.SentOf(grant);
      grant = AnswerFor(caller, std::move(grant), sent);
    }
    Answer1(caller.to, std::move(copy));
  }
  if (!set.log_key.empty()) {
    Hold* hold = set.session != 0 ? HoldById(logged.holds[0]) : nullptr;
    const bool pinned = hold != nullptr && hold->commands.size() < kPinnedCommands;
    if (pinned) hold->commands.push_back(set.log_key);
    log_.Finish(set.log_key, std::move(logged), pinned, now_);
  }
  ForgetSet(set);
}

void EngineCore::CompleteMember(const AcquireSet& set, Grant& grant, BootTime complete) {
  const BootTime sent = set.SentOf(grant);
  const bool is_new = grant.hold_count == 1 && !set.replay_only;
  const absl::Duration max_hold = set.max_hold + (complete - sent);
  if (is_new && grant.max_hold_remaining.has_value()) {
    grant.max_hold_remaining = std::min(*grant.max_hold_remaining, max_hold);
    grant.lease = std::min(grant.lease, *grant.max_hold_remaining);
  }
  if (set.session == 0) return;
  Hold& hold = *FindHold(grant.hold_id);
  hold.partial = false;
  if (is_new) hold.hard_end = std::min(hold.hard_end, sent + max_hold);
  if (set.command.feed > absl::ZeroDuration() && hold.feed == absl::ZeroDuration()) {
    hold.feed = set.command.feed;
    hold.feed_end = now_ + hold.feed;
  }
  ArmHold(hold);
  Line& line = LineOf(grant.name);
  if (!line.waiters.empty()) TellContended(line);
}

void EngineCore::GiveBackMembers(AcquireSet& set) {
  set.partial_until = BootTime::Infinite();
  for (SetMember& member : set.members) {
    const std::optional<Grant> grant = std::exchange(member.grant, std::nullopt);
    if (grant.has_value() && !set.replay_only) UndoMember(set, *grant);
  }
}

void EngineCore::UndoMember(const AcquireSet& set, const Grant& grant) {
  Hold* hold = set.session != 0 ? FindHold(grant.hold_id) : nullptr;
  if (set.session != 0 && hold == nullptr) return;  // lost meanwhile, and given back then
  Line& line = LineOf(grant.name);
  LineOp undo;
  undo.kind = LineOp::Kind::kUndo;
  undo.ref = HoldRef{grant.name, grant.owner, grant.hold_id, set.command.session_id, 1};
  undo.op_id = set.op_id;
  undo.hold = hold != nullptr ? hold->id : 0;
  undo.drop_at = now_ + 2 * options_.max_lease;
  if (hold != nullptr) hold->releasing++;
  const auto behind = std::find_if(line.ops.begin(), line.ops.end(),
                                   [](const LineOp& op) { return op.request == 0; });
  line.ops.insert(behind, std::move(undo));
  Pump(line);
}

void EngineCore::EndSet(AcquireSet& set, const Answer& answer) {
  if (const auto trying = waiter_of_.find({kSetChannel, set.request}); trying != waiter_of_.end()) {
    RemoveWaiter(*WaiterById(trying->second));
  } else {
    // Granted in this very input.
    for (Reply& reply : set_answers_) {
      Grant* grant = reply.request_id == set.request ? std::get_if<Grant>(&reply.result) : nullptr;
      if (grant != nullptr) set.members[set.trying].grant = std::move(*grant);
    }
  }
  GiveBackMembers(set);
  AnswerAll(set.callers, answer);
  if (!set.log_key.empty()) log_.Abandon(set.log_key);
  ForgetSet(set);
}

void EngineCore::ForgetSet(AcquireSet& set) {
  while (!set.callers.empty()) DropCaller(set, set.callers.back().to);
  set_requests_.erase(set.request);
  if (Session* session = SessionById(set.session)) session->sets.erase(set.id);
  sets_.erase(set.id);
}

void EngineCore::DropCaller(AcquireSet& set, ReplyTo to) {
  const auto caller = std::find_if(set.callers.begin(), set.callers.end(), [&](const Caller& c) {
    return c.to.channel == to.channel && c.to.request_id == to.request_id;
  });
  if (caller == set.callers.end()) return;
  set.callers.erase(caller);
  set_of_.erase({to.channel, to.request_id});
  const auto of_channel = channel_sets_.find(to.channel);
  if (of_channel == channel_sets_.end()) return;
  of_channel->second.erase(set.id);
  if (of_channel->second.empty()) channel_sets_.erase(of_channel);
}

void EngineCore::CancelSet(ReplyTo target) {
  const auto found = set_of_.find({target.channel, target.request_id});
  if (found == set_of_.end()) return;
  AcquireSet& set = *SetById(found->second);
  const absl::Status cancelled = Fail(Reason::kCancelled, "", "the caller cancelled the command");
  Answer1(target, cancelled);
  DropCaller(set, target);
  if (set.callers.empty()) EndSet(set, cancelled);
}

void EngineCore::OnSetChannelClosed(uint64_t channel) {
  const auto found = channel_sets_.find(channel);
  if (found == channel_sets_.end()) return;
  const absl::btree_set<LocalId> ids = found->second;
  for (const LocalId id : ids) {
    AcquireSet& set = *SetById(id);
    const Callers callers = set.callers;
    for (const Caller& caller : callers) {
      if (caller.to.channel == channel) DropCaller(set, caller.to);
    }
    if (set.callers.empty()) {
      EndSet(set, Fail(Reason::kCancelled, "", "the caller's call or stream has ended"));
    }
  }
}

}  // namespace holdfast::engine
