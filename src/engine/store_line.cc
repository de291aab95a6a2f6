// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "src/base/limits.h"
#include "src/engine/core.h"

namespace holdfast::engine {
namespace {

// A claim that was sent in time may still be on its way.
constexpr absl::Duration kAfterClaim = absl::Milliseconds(2);

}  // namespace

void EngineCore::StandInLine(Line& line, Waiter& waiter) {
  waiter.place = line.waiters.insert(line.waiters.end(), waiter.id);
  waiter.in_line = true;
  if (waiter.number == 0) ++line.barging;
  NoteWait(waiter);
}

void EngineCore::LeaveLine(Line& line, Waiter& waiter) {
  if (!waiter.in_line) return;
  line.waiters.erase(waiter.place);
  waiter.in_line = false;
  const Place place{life_, waiter.number};
  const bool others_stay = waiter.number == 0 && --line.barging > 0;
  bool& there = waiter.number > 0 ? waiter.in_store : line.stands;
  if (!others_stay && std::exchange(there, false)) {
    PassOn(line, place, PassOnOp::Kind::kLeave);
  } else if (waiter.keeps_off) {
    PassOn(line, place, PassOnOp::Kind::kWriterGone);
  }
}

void EngineCore::SetPlace(const Line& line, const Waiter& waiter, LineOp& op, AcquireOp& take) {
  if (op.kind == LineOp::Kind::kReplay || (!waiter.waits() && waiter.number == 0)) return;
  op.place = take.place = {life_, waiter.number};
  // Those behind a hold of ours that nobody can join get its release by themselves.
  take.enters = waiter.waits() && (waiter.number > 0 || !HeldAlone(line));
  take.leaves = waiter.number > 0 ? waiter.in_store : line.stands;
  take.stays = take.leaves && waiter.number == 0 && line.barging > 1;
  op.enters = take.enters;
  op.leaves = take.leaves;
}

void EngineCore::Entered(Line& line, const LineOp& op) {
  if (!op.enters) return;
  Waiter* waiter = WaiterById(op.waiter);
  if (op.place.number == 0 && line.barging > 0) {
    line.stands = true;
  } else if (waiter != nullptr) {
    waiter->in_store = true;
  } else {
    PassOn(line, op.place, PassOnOp::Kind::kLeave);
  }
}

void EngineCore::HasLeft(Line& line, Waiter& waiter, const LineOp& op, const Granted& granted) {
  if (op.leaves && !granted.replayed) {
    if (waiter.number > 0) waiter.in_store = false;
    if (waiter.number == 0 && line.barging == 1) line.stands = false;
  }
  waiter.keeps_off = false;
  if (!granted.others_first) {
    line.own_handoffs = 0;
  } else if (line.own_handoffs++ == 0) {
    line.own_since = now_;
  }
  line.others_first = granted.others_first;
  line.handed_to.clear();
}

bool EngineCore::MayKeepAmongOwn(const Line& line) const {
  if (!line.others_first) return true;
  return waiters_.at(line.waiters.front())->number == 0 &&
         line.own_handoffs < limits::kMaxOwnHandoffs && now_ - line.own_since < limits::kMaxOwnTime;
}

void EngineCore::PassOn(Line& line, Place place, PassOnOp::Kind kind) {
  LineOp op;
  op.kind = LineOp::Kind::kPassOn;
  op.place = std::move(place);
  op.pass_on = kind;
  op.drop_at = now_ + limits::kLineExpiry;
  line.ops.push_back(std::move(op));
}

void EngineCore::HandedOn(Line& line, const std::string& daemon, absl::Duration kept_for) {
  if (daemon.empty()) return;
  line.others_first = false;
  line.own_handoffs = 0;
  if (daemon == life_) {
    if (line.waiters.empty()) return PassOn(line, {life_, 0}, PassOnOp::Kind::kLeaveAll);
    return Wake(line);
  }
  line.handed_to = daemon;
  line.claim_at = now_ + kept_for + kAfterClaim;
  ArmLine(line, line.claim_at);
  if (line.waiters.empty()) return;
  const Waiter& head = *WaiterById(line.waiters.front());
  if (!(head.number > 0 ? head.in_store : line.stands)) Wake(line);
}

void EngineCore::CheckClaim(Line& line) {
  if (line.handed_to.empty()) return;
  if (line.claim_at > now_) return ArmLine(line, line.claim_at);
  PassOn(line, {std::exchange(line.handed_to, ""), 0}, PassOnOp::Kind::kUnclaimed);
}

void EngineCore::OnPassOnReply(Line& line, const LineOp& op, const StoreReply& reply) {
  const auto* released = std::get_if<Released>(&reply.result);
  if (released == nullptr) return;
  if (!released->handed_to.empty()) return HandedOn(line, released->handed_to, released->kept_for);
  // Nobody stood there who lives.
  if (op.pass_on == PassOnOp::Kind::kUnclaimed && released->freed) Wake(line);
}

void EngineCore::OnWake(const StoreEvent& event) {
  const bool for_us = event.daemon == life_;
  if (!event.daemon.empty() && !for_us) return;
  const auto it = line_ids_.find(event.name);
  if (it == line_ids_.end() && !for_us) return;
  Line& line = LineOf(event.name);
  if (for_us && line.waiters.empty()) {
    PassOn(line, {life_, 0}, PassOnOp::Kind::kLeaveAll);
  } else if (!HeldAlone(line)) {  // else the news is of an earlier release
    Wake(line);
  }
  Pump(line);
}

void EngineCore::AddWaiters(InspectAnswer& answer) const {
  std::vector<WaiterInLine>& list = answer.waiters;
  const auto found = line_ids_.find(answer.report.name);
  const Line* const line = found == line_ids_.end() ? nullptr : lines_.at(found->second).get();
  const std::vector<Place>& places = answer.report.line;
  const auto add_ours = [&](const std::function<bool(const Waiter&)>& which) {
    if (line == nullptr) return;
    for (const LocalId id : line->waiters) {
      const Waiter& waiter = *waiters_.at(id);
      if (!which(waiter) || list.size() == limits::kMaxWaitersInReport) continue;
      list.push_back({"", waiter.command.owner, waiter.command.note, waiter.command.mode,
                      waiter.number > 0, now_ - waiter.callers[0].received,
                      std::max(waiter.deadline - now_, absl::ZeroDuration())});
    }
  };
  // Those without a place get what their own daemon gives back.
  add_ours([&](const Waiter& waiter) {
    return std::find(places.begin(), places.end(), Place{life_, waiter.number}) == places.end();
  });
  for (const Place& place : places) {
    if (place.daemon == life_) {
      add_ours([&](const Waiter& waiter) { return waiter.number == place.number; });
      continue;
    }
    ++answer.queue_length;
    if (list.size() == limits::kMaxWaitersInReport) continue;
    WaiterInLine other;
    other.daemon = place.daemon;
    other.fifo = place.number > 0;
    list.push_back(std::move(other));
  }
}

}  // namespace holdfast::engine
