// SPDX-License-Identifier: Apache-2.0
//
// Who waits for whom, and the end of waits that could never end. An owner stands for one call
// chain: while it waits it releases nothing. So what it was seen to hold after it began to wait, it
// holds still; what was seen before that is looked at again.
#include <algorithm>

#include "src/base/limits.h"
#include "src/engine/core.h"

namespace holdfast::engine {
namespace {

// Readers, and holders of permits, do not wait for each other as such.
bool StandsInTheWay(Mode held, Mode wanted) { return held != wanted || held == Mode::kExclusive; }

}  // namespace

void EngineCore::NoteWait(const Waiter& waiter) {
  if (!waiter.may_block()) return;
  owner_waits_[waiter.command.owner].insert(waiter.id);
}

void EngineCore::ForgetWait(const Waiter& waiter) {
  const auto it = owner_waits_.find(waiter.command.owner);
  if (it == owner_waits_.end()) return;
  it->second.erase(waiter.id);
  if (it->second.empty()) owner_waits_.erase(it);
}

std::vector<WaitEdge> EngineCore::EdgesOf(LocalId id) {
  std::vector<WaitEdge> edges;
  const Waiter& waiter = *WaiterById(id);
  const Line& line = *waiter.line;
  const auto add = [&](const std::string& owner, Mode mode, BootTime known_at) {
    const auto waits = owner_waits_.find(owner);
    if (owner == waiter.command.owner || waits == owner_waits_.end()) return;
    if (!StandsInTheWay(mode, waiter.command.mode)) return;
    for (const LocalId to : waits->second) {
      edges.push_back(WaitEdge{to, known_at >= WaiterById(to)->began});
    }
  };
  for (const LocalId hold_id : line.holds) {
    const Hold& hold = *HoldById(hold_id);
    if (!hold.lost && !hold.being_released()) add(hold.ref.owner, hold.mode, now_);
  }
  // Somebody gives something back: what the store said is about to change.
  const bool unsettled =
      std::any_of(line.ops.begin(), line.ops.end(), [](const LineOp& op) { return !op.takes(); });
  if (HeldAlone(line) || unsettled) return edges;
  for (const HolderState& holder : line.last_holders) {
    if (holder.foreign || session_ids_.contains(holder.session)) continue;
    const bool over = line.holders_at + holder.expires_in <= now_;
    add(holder.owner, holder.mode, over ? BootTime() : line.holders_at);
  }
  return edges;
}

void EngineCore::BreakCycles(LocalId start, size_t* budget) {
  while (const Waiter* waiter = WaiterById(start)) {
    if (!waiter->may_block()) return;
    const std::optional<WaitCycle> cycle = FindCycle(
        start, [this](LocalId id) { return EdgesOf(id); }, limits::kMaxDeadlockLength, budget);
    if (!cycle.has_value()) return;
    for (const LocalId id : cycle->doubtful) LookAgain(*WaiterById(id)->line);
    if (!cycle->doubtful.empty()) return;
    RefuseNewest(cycle->waiters);
  }
}

void EngineCore::RefuseNewest(std::vector<LocalId> cycle) {
  std::rotate(cycle.begin(), std::max_element(cycle.begin(), cycle.end()), cycle.end());
  Waiter& newest = *WaiterById(cycle.front());
  NotAcquired refusal = Refusal(newest, NotAcquiredReason::kDeadlock);
  for (const LocalId id : cycle) {
    const Acquire& wait = WaiterById(id)->command;
    refusal.cycle.push_back(CycleStep{wait.owner, wait.name, wait.note});
  }
  AnswerWaiter(newest, std::move(refusal));
}

void EngineCore::BreakCyclesOf(const std::string& owner, size_t* budget) {
  const auto waits = owner_waits_.find(owner);
  if (waits == owner_waits_.end()) return;
  const std::vector<LocalId> ids(waits->second.begin(), waits->second.end());
  for (const LocalId id : ids) BreakCycles(id, budget);
}

void EngineCore::AfterTry(Line& line, const LineOp& op, bool granted) {
  size_t budget = limits::kMaxDeadlockVisits;
  if (!granted) {
    BreakCycles(op.waiter, &budget);
    return AfterLook(line, &budget);
  }
  if (line.waiters.empty() || !owner_waits_.contains(op.ref.owner)) return;
  if (op.ref.session.empty()) return LookAgain(line);
  BreakCyclesOf(op.ref.owner, &budget);
}

void EngineCore::AfterLook(Line& line, size_t* budget) {
  std::vector<std::string> owners;
  for (const HolderState& holder : line.last_holders) {
    if (owner_waits_.contains(holder.owner)) owners.push_back(holder.owner);
  }
  for (const std::string& owner : owners) BreakCyclesOf(owner, budget);
}

void EngineCore::LookAgain(Line& line) {
  if (line.looking || !store_up_) return;
  line.looking = true;
  Pending pending;
  pending.kind = Pending::Kind::kLook;
  pending.line = line.id;
  Submit(InspectOp{line.name}, std::move(pending));
}

void EngineCore::OnLookReply(const Pending& pending, StoreReply& reply) {
  Line* line = LineById(pending.line);
  if (line == nullptr) return;
  line->looking = false;
  auto* report = std::get_if<KeyReport>(&reply.result);
  if (report == nullptr || pending.sent < line->holders_at) return;
  line->last_holders = std::move(report->holders);
  if (line->last_holders.size() > limits::kMaxHoldersInAnswer) {
    line->last_holders.resize(limits::kMaxHoldersInAnswer);
  }
  line->holders_at = pending.sent;
  size_t budget = limits::kMaxDeadlockVisits;
  AfterLook(*line, &budget);
}

}  // namespace holdfast::engine
