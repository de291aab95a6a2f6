// SPDX-License-Identifier: Apache-2.0
//
// A libuv loop that runs until a condition holds, with a deadline; and a
// listener that keeps what a store says.
#pragma once

#include <uv.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/store/store.h"

namespace holdfast::testing {

using Result = decltype(StoreReply::result);

class TestLoop {
 public:
  TestLoop();
  ~TestLoop();  // runs what is left to close

  uv_loop_t* uv() { return &loop_; }
  const Clock& clock() const { return clock_; }

  // Runs turns until `done` answers true; false after `limit`. What `each_turn` was given is called
  // once a turn.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit = absl::Seconds(10));
  // Runs for that long. For "nothing happens" only.
  void RunFor(absl::Duration span);

  int AddTurn(std::function<void()> each_turn);
  void RemoveTurn(int id) { turns_.erase(id); }

 private:
  uv_loop_t loop_;
  uv_timer_t* wake_;  // keeps a turn from lasting forever
  MachineClock clock_;
  std::map<int, std::function<void()>> turns_;
  int next_turn_ = 1;
};

// One daemon's view of a store: submits requests and remembers answers and events.
class StoreClient : public StoreListener {
 public:
  StoreClient(TestLoop* loop, std::unique_ptr<Store> store);
  ~StoreClient() override;

  void OnStoreReply(StoreReply reply) override;
  void OnStoreEvent(StoreEvent event) override { events_.push_back(std::move(event)); }

  // Starts the store and waits for kUp.
  bool StartAndWait();
  absl::Status Start() { return store_->Start(this); }

  // Submits without waiting; the answer is found under the id.
  uint64_t Submit(decltype(StoreRequest::op) op);
  bool Answered(uint64_t id) const { return replies_.count(id) != 0; }
  // Waits for the answer of Submit(); a StoreFailure that says so where none came.
  Result Wait(uint64_t id);
  Result Ask(decltype(StoreRequest::op) op) { return Wait(Submit(std::move(op))); }

  // Waits for an event and takes it and those before it off the list.
  std::optional<StoreEvent> WaitEvent(StoreEvent::Kind kind,
                                      absl::Duration limit = absl::Seconds(10));
  bool HasEvent(StoreEvent::Kind kind) const;
  const std::vector<StoreEvent>& events() const { return events_; }
  void ForgetEvents() { events_.clear(); }
  size_t unexpected_replies() const { return unexpected_replies_; }

  Store& store() { return *store_; }
  TestLoop& loop() { return *loop_; }
  void StopStore();

 private:
  TestLoop* const loop_;
  std::unique_ptr<Store> store_;
  int turn_ = 0;
  bool started_ = false;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Result> replies_;
  std::vector<StoreEvent> events_;
  size_t unexpected_replies_ = 0;  // second answers, and those to nobody
};

}  // namespace holdfast::testing
