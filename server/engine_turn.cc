// SPDX-License-Identifier: Apache-2.0
//
// One turn of the engine's loop: in with what came, out with what follows from it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/engine_loop_impl.h"
#include "server/log.h"
#include "src/base/durations.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// libuv's timers count a clock that stands still while the machine sleeps. Looking at the boot
// clock at least that often bounds how late a deadline is noticed after a suspend.
constexpr absl::Duration kLongestNap = absl::Seconds(1);
// Answers that come from within Flush() are worked off in the same turn, but the loop must get to
// its sockets now and then.
constexpr int kMaxRoundsPerTurn = 64;

// Also of an event that was moved out.
bool IsGrant(const engine::Event& event) {
  const auto* reply = std::get_if<engine::Reply>(&event.body);
  return reply != nullptr && (std::holds_alternative<engine::Grant>(reply->result) ||
                              std::holds_alternative<engine::AllGranted>(reply->result));
}

uint64_t CeilMillis(absl::Duration d) {
  return static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Ceil(d, absl::Milliseconds(1))));
}

}  // namespace

void EngineLoop::Impl::OnStoreEvent(StoreEvent event) {
  switch (event.kind) {
    case StoreEvent::Kind::kUp:
      LogInfo("the store can be reached", {{"store", store_description}, {"detail", event.detail}});
      break;
    case StoreEvent::Kind::kDown:
      LogError("the store cannot be reached: nothing is granted or renewed until it can",
               {{"store", store_description}, {"detail", event.detail}});
      break;
    case StoreEvent::Kind::kGrace:
      if (event.remaining > absl::ZeroDuration()) {
        LogWarn(absl::StrCat("the store is in its grace period for another ",
                             DurationText(absl::Ceil(event.remaining, absl::Seconds(1))), ": ",
                             event.detail,
                             ", grants nothing until then; --no-grace skips this on a store that "
                             "nobody holds locks on"),
                {{"store", store_description}});
      } else {
        LogInfo("the store's grace period is over", {{"store", store_description}});
      }
      break;
    case StoreEvent::Kind::kWake:
    case StoreEvent::Kind::kNews:
    case StoreEvent::Kind::kNewsMissed:
    case StoreEvent::Kind::kAudience:
      break;
  }
  engine_.OnStoreEvent(event, clock_.Now());
}

void EngineLoop::Impl::TakeCommands() {
  if (stopping_.load()) {
    uv_stop(&loop_);
    return;
  }
  queue_.TakeAll(taken_);
  const BootTime now = clock_.Now();
  for (Batch& batch : taken_) {
    if (batch.sink != nullptr) sinks_[batch.channel] = std::move(batch.sink);
    for (engine::Command& command : batch.commands) {
      if (std::holds_alternative<engine::ChannelClosed>(command)) closed_.push_back(batch.channel);
      engine_.Handle(std::move(command), now);
    }
  }
  taken_.clear();
}

void EngineLoop::Impl::EndTurn() {
  BootTime now = clock_.Now();
  if (engine_.NextDeadline() <= now) engine_.Advance(now);
  bool flushed = false;
  for (int round = 0;; ++round) {
    engine_.TakeOutput(&out_);
    std::move(out_.events.begin(), out_.events.end(), std::back_inserter(events_));
    if (out_.requests.empty() && flushed) break;
    for (StoreRequest& request : out_.requests) store_->Submit(std::move(request));
    if (round == kMaxRoundsPerTurn) {
      uv_async_send(&wake_);
      break;
    }
    store_->Flush();
    flushed = true;
  }
  Deliver(events_);
  events_.clear();
  // Only now: an answer that crossed its channel's end finds the sink, which may have to undo it.
  for (const uint64_t channel : closed_) sinks_.erase(channel);
  closed_.clear();
  now = clock_.Now();
  NoticeServing(now);
  if (drained_.has_value()) {
    EndAllStreams();
    if (hooks_.on_drained) hooks_.on_drained(*std::exchange(drained_, std::nullopt));
  }
  ArmTimer(now);
}

// One call a channel: the sinks make one message of it. Whoever got a lock is told first: a write
// takes its time, and somebody may be about to work.
void EngineLoop::Impl::Deliver(std::vector<engine::Event>& events) {
  const auto earlier = [](const engine::Event& a, const engine::Event& b) {
    return a.channel < b.channel;
  };
  if (!std::is_sorted(events.begin(), events.end(), earlier)) {
    std::stable_sort(events.begin(), events.end(), earlier);
  }
  for (const bool granted : {true, false}) {
    for (size_t begin = 0; begin < events.size();) {
      size_t end = begin + 1;
      while (end < events.size() && events[end].channel == events[begin].channel) ++end;
      const absl::Span<engine::Event> all = absl::MakeSpan(events).subspan(begin, end - begin);
      if (std::any_of(all.begin(), all.end(), IsGrant) == granted) DeliverTo(all[0].channel, all);
      begin = end;
    }
  }
}

void EngineLoop::Impl::DeliverTo(uint64_t channel, absl::Span<engine::Event> events) {
  if (channel == 0) {
    for (const engine::Event& event : events) {
      if (const auto* done = std::get_if<engine::DrainDone>(&event.body)) drained_ = *done;
    }
    return;
  }
  const auto sink = sinks_.find(channel);
  if (sink != sinks_.end() && !sink->second->Deliver(events)) sinks_.erase(sink);
}

// Only after that is the daemon told, so that it does not cut off what is still on its way.
void EngineLoop::Impl::EndAllStreams() {
  const absl::Status status = Fail(Reason::kDraining, "", "the daemon has shut down; use another");
  for (const auto& [channel, sink] : std::exchange(sinks_, {})) {
    engine::Event end{channel, engine::EndStream{status}};
    sink->Deliver(absl::MakeSpan(&end, 1));
  }
}

void EngineLoop::Impl::NoticeServing(BootTime now) {
  const engine::EngineStatus status = engine_.status();
  const bool serving = status.store_up && status.grace_until <= now && !status.draining;
  if (serving_ == serving) return;
  serving_ = serving;
  if (hooks_.on_serving) hooks_.on_serving(serving);
}

void EngineLoop::Impl::ArmTimer(BootTime now) {
  BootTime next = engine_.NextDeadline();
  const BootTime grace_until = engine_.status().grace_until;
  if (grace_until > now) next = std::min(next, grace_until);
  if (next.is_infinite()) {
    uv_timer_stop(&timer_);
  } else if (next != armed_for_ || uv_is_active(reinterpret_cast<uv_handle_t*>(&timer_)) == 0) {
    const absl::Duration left = std::clamp(next - now, absl::ZeroDuration(), kLongestNap);
    // The loop's own idea of the time is as old as the turn.
    uv_update_time(&loop_);
    uv_timer_start(
        &timer_, [](uv_timer_t*) {}, CeilMillis(left), 0);
  }
  armed_for_ = next;
}

}  // namespace holdfast::server
