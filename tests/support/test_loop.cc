// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_loop.h"

namespace holdfast::testing {

TestLoop::TestLoop() : wake_(new uv_timer_t) {
  uv_loop_init(&loop_);
  uv_timer_init(&loop_, wake_);
  uv_timer_start(
      wake_, [](uv_timer_t*) {}, 5, 5);
}

TestLoop::~TestLoop() {
  uv_close(reinterpret_cast<uv_handle_t*>(wake_),
           [](uv_handle_t* h) { delete reinterpret_cast<uv_timer_t*>(h); });
  uv_run(&loop_, UV_RUN_DEFAULT);
  if (uv_loop_close(&loop_) != 0) abort();  // somebody left a handle open
}

bool TestLoop::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  const BootTime end = clock_.Now() + limit;
  for (;;) {
    for (const auto& [id, turn] : std::map<int, std::function<void()>>(turns_)) turn();
    if (done()) return true;
    if (clock_.Now() >= end) return false;
    uv_run(&loop_, UV_RUN_ONCE);
  }
}

void TestLoop::RunFor(absl::Duration span) {
  RunUntil([] { return false; }, span);
}

int TestLoop::AddTurn(std::function<void()> each_turn) {
  turns_[next_turn_] = std::move(each_turn);
  return next_turn_++;
}

StoreClient::StoreClient(TestLoop* loop, std::unique_ptr<Store> store)
    : loop_(loop), store_(std::move(store)) {
  turn_ = loop_->AddTurn([this] {
    if (started_) store_->Flush();
  });
}

StoreClient::~StoreClient() {
  loop_->RemoveTurn(turn_);
  StopStore();
}

void StoreClient::StopStore() {
  if (started_) store_->Stop();
  started_ = false;
}

void StoreClient::OnStoreReply(StoreReply reply) {
  const bool is_new = replies_.emplace(reply.id, std::move(reply.result)).second;
  if (!is_new || reply.id >= next_id_) ++unexpected_replies_;
}

bool StoreClient::StartAndWait() {
  if (!store_->Start(this).ok()) return false;
  started_ = true;
  return WaitEvent(StoreEvent::Kind::kUp).has_value();
}

uint64_t StoreClient::Submit(decltype(StoreRequest::op) op) {
  started_ = true;
  const uint64_t id = next_id_++;
  store_->Submit({id, std::move(op)});
  return id;
}

Result StoreClient::Wait(uint64_t id) {
  if (!loop_->RunUntil([&] { return Answered(id); })) {
    return StoreFailure{StoreFailureKind::kOther, true, "the test got no answer in time"};
  }
  return replies_.at(id);
}

std::optional<StoreEvent> StoreClient::WaitEvent(StoreEvent::Kind kind, absl::Duration limit) {
  std::optional<StoreEvent> found;
  loop_->RunUntil(
      [&] {
        for (size_t i = 0; i < events_.size(); ++i) {
          if (events_[i].kind != kind) continue;
          found = std::move(events_[i]);
          events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
          return true;
        }
        return false;
      },
      limit);
  return found;
}

bool StoreClient::HasEvent(StoreEvent::Kind kind) const {
  for (const StoreEvent& event : events_) {
    if (event.kind == kind) return true;
  }
  return false;
}

}  // namespace holdfast::testing
