// SPDX-License-Identifier: Apache-2.0
#include "src/base/status.h"
#include "absl/strings/str_cat.h"
#include "src/engine/core.h"
#include "src/engine/validate.h"

namespace holdfast::engine {
namespace {

// After the limit: how long holders have to acknowledge their loss.
constexpr absl::Duration kDrainAcks = absl::Seconds(1);

}  // namespace

void EngineCore::Handle(Inspect command) {
  absl::Status valid = Validate(command);
  if (valid.ok() && !store_up_) valid = StoreUnreachable();
  if (!valid.ok()) return Answer1(command.head.reply_to, valid);
  Pending pending;
  pending.kind = Pending::Kind::kInspect;
  pending.callers = {Caller{command.head.reply_to, command.head.received}};
  Submit(InspectOp{std::move(command.name)}, std::move(pending));
}

void EngineCore::Handle(List command) {
  absl::Status valid = Validate(command);
  if (valid.ok() && !store_up_) valid = StoreUnreachable();
  if (!valid.ok()) return Answer1(command.head.reply_to, valid);
  Pending pending;
  pending.kind = Pending::Kind::kList;
  pending.callers = {Caller{command.head.reply_to, command.head.received}};
  Submit(ListOp{std::move(command.ns), std::move(command.prefix), std::move(command.cursor)},
         std::move(pending));
}

InspectAnswer EngineCore::WithQueue(KeyReport report) const {
  InspectAnswer answer{std::move(report), 0};
  const auto it = line_ids_.find(answer.report.name);
  if (it == line_ids_.end()) return answer;
  answer.queue_length = static_cast<uint32_t>(lines_.at(it->second)->waiters.size());
  return answer;
}

void EngineCore::OnInspectReply(const Pending& pending, StoreReply& reply) {
  if (auto* report = std::get_if<KeyReport>(&reply.result)) {
    InspectAnswer answer = WithQueue(std::move(*report));
    AddWaiters(answer);
    return AnswerAll(pending.callers, answer);
  }
  const auto* failure = std::get_if<StoreFailure>(&reply.result);
  AnswerAll(pending.callers, failure != nullptr ? StatusOf(*failure) : StoreUnreachable());
}

void EngineCore::OnListReply(const Pending& pending, StoreReply& reply) {
  if (auto* page = std::get_if<ListPage>(&reply.result)) {
    ListAnswer answer;
    answer.next_cursor = std::move(page->next_cursor);
    for (KeyReport& report : page->keys) answer.keys.push_back(WithQueue(std::move(report)));
    return AnswerAll(pending.callers, answer);
  }
  const auto* failure = std::get_if<StoreFailure>(&reply.result);
  AnswerAll(pending.callers, failure != nullptr ? StatusOf(*failure) : StoreUnreachable());
}

void EngineCore::Handle(Drain command) {
  const BootTime at = command.received + command.limit;
  if (!draining_ || at < drain_at_) {
    drain_at_ = at;
    timers_.Add(Timer{at, TimerKind::kDrain, 0});
  }
  if (!draining_) {
    draining_ = true;
    for (const LocalId id : session_order_) {
      const Session& session = *SessionById(id);
      if (session.channel != 0) Send(session.channel, Draining{command.limit});
    }
    const absl::Status status = Fail(Reason::kDraining, "", "the daemon is shutting down");
    for (const LocalId id : InOrder(sets_)) EndSet(*SetById(id), status);
    for (const LocalId id : InOrder(waiters_)) {
      if (Waiter* waiter = WaiterById(id)) AnswerWaiter(*waiter, status);
    }
  }
  CheckDrained();
}

void EngineCore::OnDrainTimer() {
  if (drain_at_ > now_ || drain_done_) return;
  if (drain_over_) {
    drain_at_ = BootTime::Infinite();
    drain_done_ = true;
    return Send(0, DrainDone{static_cast<uint32_t>(holds_.size())});
  }
  drain_over_ = true;
  drain_at_ = now_ + kDrainAcks;
  timers_.Add(Timer{drain_at_, TimerKind::kDrain, 0});
  for (const LocalId id : InOrder(holds_)) {
    Hold* hold = HoldById(id);
    if (hold != nullptr && !hold->lost) Lose(*hold, LossReason::kDrained, false);
  }
}

void EngineCore::CheckDrained() {
  if (!draining_ || drain_done_ || !holds_.empty()) return;
  for (const auto& [id, line] : lines_) {
    if (!line->ops.empty()) return;
  }
  drain_done_ = true;
  Send(0, DrainDone{0});
}

EngineStatus EngineCore::status() const {
  return EngineStatus{store_up_,        grace_until_,  draining_,
                      sessions_.size(), holds_.size(), waiters_.size()};
}

std::optional<std::string> EngineCore::FindInconsistency() const {
  for (const auto& [id, hold] : holds_) {
    const auto line = line_ids_.find(hold->ref.name);
    if (line == line_ids_.end()) return absl::StrCat("hold ", hold->ref.hold_id, " has no line");
    const std::vector<LocalId>& holds = lines_.at(line->second)->holds;
    if (std::count(holds.begin(), holds.end(), id) != 1) return "a line misses one of its holds";
    if (!sessions_.contains(hold->session)) return "a hold outlived its session";
    if (hold->count == 0) return "a hold without a count";
  }
  for (const auto& [id, line] : lines_) {
    if (line->idle()) return absl::StrCat("line ", line->name.ToString(), " is idle but kept");
    for (const LocalId waiter : line->waiters) {
      if (!waiters_.contains(waiter)) return "a line has a waiter that is gone";
    }
    if (line->waiters.empty() && line->subscribed) return "a subscription that nobody needs";
    size_t in_flight = 0;
    for (const LineOp& op : line->ops) in_flight += op.request != 0 ? 1 : 0;
    const bool hands_over = in_flight == 2 && !line->ops.front().takes() &&
                            std::next(line->ops.begin())->kind == LineOp::Kind::kTry;
    if (in_flight > 1 && !hands_over) return "two steps of one key in flight";
    const bool asleep =
        store_up_ && !line->waiters.empty() && line->retry_at.is_infinite() && line->ops.empty();
    if (asleep) return absl::StrCat("nobody wakes the waiters of ", line->name.ToString());
  }
  for (const auto& [id, waiter] : waiters_) {
    if (waiter->session != 0 && !sessions_.contains(waiter->session)) {
      return "a waiter outlived its session";
    }
  }
  for (const auto& [id, set] : sets_) {
    if (!waiter_of_.contains({kSetChannel, set->request})) return "nobody works on an AcquireAll";
    if (set->session != 0 && !sessions_.contains(set->session)) {
      return "an AcquireAll outlived its session";
    }
  }
  if (set_requests_.size() != sets_.size()) return "an AcquireAll has not one acquire under way";
  if (hold_ids_.size() != holds_.size()) return "hold ids and holds differ";
  return std::nullopt;
}

}  // namespace holdfast::engine
