// SPDX-License-Identifier: Apache-2.0
//
// The inside of EngineLoop: the thread's life is in engine_loop.cc, its turns in engine_turn.cc.
#pragma once

#include <uv.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/command_queue.h"
#include "server/engine_loop.h"
#include "src/base/limits.h"

namespace holdfast::server {

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
  engine::Output out_;                 // kept for its memory
  std::vector<engine::Event> events_;  // of this turn
  std::vector<uint64_t> closed_;       // in this turn
  std::optional<engine::DrainDone> drained_;
  BootTime armed_for_ = BootTime::Infinite();
  std::optional<bool> serving_;
};

}  // namespace holdfast::server
