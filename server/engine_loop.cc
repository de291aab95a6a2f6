// SPDX-License-Identifier: Apache-2.0
#include "server/engine_loop.h"

#include "server/engine_loop_impl.h"

namespace holdfast::server {

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
