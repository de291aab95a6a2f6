// SPDX-License-Identifier: Apache-2.0
#include "server/engine_loop.h"

#include <uv.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/command_queue.h"
#include "server/log.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// libuv's timers count a clock that stands still while the machine sleeps. Looking at the boot
// clock at least that often bounds how late a deadline is noticed after a suspend.
constexpr absl::Duration kLongestNap = absl::Seconds(1);
// Answers that come from within Flush() are worked off in the same turn, but the loop must get to
// its sockets now and then.
constexpr int kMaxRoundsPerTurn = 64;

uint64_t CeilMillis(absl::Duration d) {
  return static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Ceil(d, absl::Milliseconds(1))));
}

}  // namespace

class EngineLoop::Impl final : public StoreListener {
 public:
  Impl(engine::EngineOptions options, StoreFactory make_store, IdSource* ids, const Clock& clock,
       Hooks hooks)
      : make_store_(std::move(make_store)),
        clock_(clock),
        hooks_(std::move(hooks)),
        queue_(limits::kMaxQueuedCommands),
        engine_(options, ids) {}
  ~Impl() override { Stop(); }

  absl::Status Start();
  void Stop();
  bool Post(Batch batch, bool always);

  void OnStoreReply(StoreReply reply) override {
    engine_.OnStoreReply(std::move(reply), clock_.Now());
  }
  void OnStoreEvent(StoreEvent event) override;

  std::atomic<uint64_t> next_channel{1};  // 0 is the engine's own
  std::string store_description;          // written before Start() returns

 private:
  void Wake();
  void SetRunning(bool running);
  void Run(std::promise<absl::Status>* started);
  absl::Status StartStore();
  void TakeCommands();
  void EndTurn();
  void Deliver(std::vector<engine::Event>& events);
  void DeliverTo(uint64_t channel, absl::Span<engine::Event> events);
  void EndAllStreams();
  void NoticeServing(BootTime now);
  void ArmTimer(BootTime now);
  void CloseHandles();

  const StoreFactory make_store_;
  const Clock& clock_;
  const Hooks hooks_;

  // Shared with the threads that post.
  CommandQueue queue_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::mutex wake_mutex_;  // guards running_, and wake_ against being used while it is closed
  bool running_ = false;
  uv_async_t wake_{};

  // The loop thread's own.
  uv_loop_t loop_{};
  uv_prepare_t turn_{};
  uv_timer_t timer_{};
  engine::Engine engine_;
  std::unique_ptr<Store> store_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<EventSink>> sinks_;
  std::vector<Batch> taken_;
  std::vector<uint64_t> closed_;  // in this turn
  std::optional<engine::DrainDone> drained_;
  BootTime armed_for_ = BootTime::Infinite();
  std::optional<bool> serving_;
};

absl::Status EngineLoop::Impl::Start() {
  std::promise<absl::Status> started;
  std::future<absl::Status> result = started.get_future();
  thread_ = std::thread([this, &started] { Run(&started); });
  absl::Status status = result.get();
  if (!status.ok()) thread_.join();
  return status;
}

void EngineLoop::Impl::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  Wake();
  thread_.join();
}

void EngineLoop::Impl::Wake() {
  const std::lock_guard<std::mutex> lock(wake_mutex_);
  if (running_) uv_async_send(&wake_);
}

void EngineLoop::Impl::SetRunning(bool running) {
  const std::lock_guard<std::mutex> lock(wake_mutex_);
  running_ = running;
}

bool EngineLoop::Impl::Post(Batch batch, bool always) {
  const CommandQueue::Pushed pushed = queue_.Push(std::move(batch), always);
  if (pushed == CommandQueue::Pushed::kFirst) Wake();
  return pushed != CommandQueue::Pushed::kFull;
}

void EngineLoop::Impl::Run(std::promise<absl::Status>* started) {
  uv_loop_init(&loop_);
  uv_async_init(&loop_, &wake_, [](uv_async_t* h) { static_cast<Impl*>(h->data)->TakeCommands(); });
  uv_prepare_init(&loop_, &turn_);
  uv_timer_init(&loop_, &timer_);
  wake_.data = turn_.data = timer_.data = this;
  // Prepare callbacks run right before the loop waits: everything that came in is known by then.
  uv_prepare_start(&turn_, [](uv_prepare_t* h) { static_cast<Impl*>(h->data)->EndTurn(); });

  const absl::Status status = StartStore();
  SetRunning(status.ok());
  started->set_value(status);  // `started` is gone after this
  if (status.ok()) {
    uv_async_send(&wake_);  // for what was posted before anybody could be woken
    uv_run(&loop_, UV_RUN_DEFAULT);
    SetRunning(false);
    store_->Stop();
  }
  CloseHandles();
}

absl::Status EngineLoop::Impl::StartStore() {
  absl::StatusOr<std::unique_ptr<Store>> store = make_store_(&loop_);
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  store_description = store_->Describe();
  return store_->Start(this);
}

void EngineLoop::Impl::CloseHandles() {
  sinks_.clear();
  taken_.clear();
  uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&turn_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
  // The store's handles end in callbacks of the loop, some begun by its destructor only.
  uv_run(&loop_, UV_RUN_NOWAIT);
  store_.reset();
  uv_run(&loop_, UV_RUN_DEFAULT);
  uv_loop_close(&loop_);
}

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
  std::vector<engine::Event> events;
  bool flushed = false;
  for (int round = 0;; ++round) {
    engine::Output out = engine_.TakeOutput();
    std::move(out.events.begin(), out.events.end(), std::back_inserter(events));
    if (out.requests.empty() && flushed) break;
    if (round == kMaxRoundsPerTurn) {
      for (StoreRequest& request : out.requests) store_->Submit(std::move(request));
      uv_async_send(&wake_);
      break;
    }
    for (StoreRequest& request : out.requests) store_->Submit(std::move(request));
    store_->Flush();
    flushed = true;
  }
  Deliver(events);
  // Only now: an answer that crossed its channel's end still finds the sink, which may have to undo
  // it.
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

// One call a channel: the sinks make one message of it.
void EngineLoop::Impl::Deliver(std::vector<engine::Event>& events) {
  const auto earlier = [](const engine::Event& a, const engine::Event& b) {
    return a.channel < b.channel;
  };
  if (!std::is_sorted(events.begin(), events.end(), earlier)) {
    std::stable_sort(events.begin(), events.end(), earlier);
  }
  for (size_t begin = 0; begin < events.size();) {
    size_t end = begin + 1;
    while (end < events.size() && events[end].channel == events[begin].channel) ++end;
    DeliverTo(events[begin].channel, absl::MakeSpan(events).subspan(begin, end - begin));
    begin = end;
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

EngineLoop::EngineLoop(engine::EngineOptions options, StoreFactory make_store, IdSource* ids,
                       const Clock& clock, Hooks hooks)
    : impl_(std::make_unique<Impl>(options, std::move(make_store), ids, clock, std::move(hooks))) {}

EngineLoop::~EngineLoop() = default;

absl::Status EngineLoop::Start() { return impl_->Start(); }
uint64_t EngineLoop::NewChannel() {
  return impl_->next_channel.fetch_add(1, std::memory_order_relaxed);
}
bool EngineLoop::Post(Batch batch) { return impl_->Post(std::move(batch), /*always=*/false); }
void EngineLoop::PostUnrefusable(Batch batch) { impl_->Post(std::move(batch), /*always=*/true); }
void EngineLoop::Stop() { impl_->Stop(); }
const std::string& EngineLoop::store_description() const { return impl_->store_description; }

}  // namespace holdfast::server
