// SPDX-License-Identifier: Apache-2.0
#include "server/engine_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "server/random_ids.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// Grants every key at once, from within Flush().
class YesStore final : public Store {
 public:
  explicit YesStore(absl::Status start) : start_(std::move(start)) {}

  absl::Status Start(StoreListener* listener) override {
    listener_ = listener;
    if (start_.ok())
      listener_->OnStoreEvent(
          {.kind = StoreEvent::Kind::kUp, .name = {}, .remaining = {}, .detail = {}});
    return start_;
  }
  void Submit(StoreRequest request) override { submitted_.push_back(std::move(request)); }
  void Flush() override {
    for (const StoreRequest& request : std::exchange(submitted_, {})) {
      if (const auto* acquire = std::get_if<AcquireOp>(&request.op)) {
        Granted granted;
        granted.hold_id = acquire->hold.hold_id;
        granted.token = ++token_;
        granted.owner_count = granted.hold_count = 1;
        granted.lease_remaining = acquire->lease;
        listener_->OnStoreReply({request.id, granted});
      } else if (std::holds_alternative<ReleaseOp>(request.op)) {
        Released released;
        released.freed = true;
        listener_->OnStoreReply({request.id, released});
      }
    }
  }
  std::string Describe() const override { return "yes:"; }
  void Stop() override {}

 private:
  const absl::Status start_;
  StoreListener* listener_ = nullptr;
  std::vector<StoreRequest> submitted_;
  int64_t token_ = 0;
};

class Collector final : public EventSink {
 public:
  bool Deliver(absl::Span<engine::Event> events) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_;
    for (engine::Event& event : events) events_.push_back(std::move(event));
    changed_.notify_all();
    return true;
  }
  std::vector<engine::Event> WaitFor(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return events_.size() >= count; });
    return events_;
  }
  size_t calls() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<engine::Event> events_;
  size_t calls_ = 0;
};

class EngineLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EngineLoop> MakeLoop(absl::Status store_start = absl::OkStatus()) {
    return std::make_unique<EngineLoop>(
        engine::EngineOptions(),
        [store_start](uv_loop_s*) -> absl::StatusOr<std::unique_ptr<Store>> {
          return std::make_unique<YesStore>(store_start);
        },
        &ids_, clock_,
        EngineLoop::Hooks{[this](bool serving) { serving_ = serving; },
                          [this](const engine::DrainDone&) { drained_.set_value(); }});
  }
  engine::Command Open(uint64_t channel) {
    engine::OpenSession open;
    open.head = {{channel, 0}, "anonymous", clock_.Now()};
    return open;
  }
  engine::Command Acquire(uint64_t channel, uint64_t request_id) {
    engine::Acquire acquire;
    acquire.head = {{channel, request_id}, "anonymous", clock_.Now()};
    acquire.name = {"default", "key" + std::to_string(request_id)};
    return acquire;
  }

  RandomIds ids_;
  MachineClock clock_;
  std::atomic<bool> serving_{false};
  std::promise<void> drained_;
};

TEST_F(EngineLoopTest, AnswersOfOneTurnComeInOneCallAndInOrder) {
  auto loop = MakeLoop();
  auto sink = std::make_shared<Collector>();
  const uint64_t channel = loop->NewChannel();
  Batch batch{channel, sink, {}};
  for (uint64_t id = 1; id <= 100; ++id) batch.commands.push_back(Acquire(channel, id));
  // Posted before the thread runs: it is not lost.
  ASSERT_TRUE(loop->Post(std::move(batch)));
  ASSERT_TRUE(loop->Start().ok());
  const std::vector<engine::Event> events = sink->WaitFor(100);
  EXPECT_EQ(sink->calls(), 1u);
  for (uint64_t id = 1; id <= 100; ++id) {
    const auto& reply = std::get<engine::Reply>(events[id - 1].body);
    EXPECT_EQ(reply.request_id, id);
    EXPECT_TRUE(std::holds_alternative<engine::Grant>(reply.result));
  }
  EXPECT_TRUE(serving_);
  loop->Stop();
}

TEST_F(EngineLoopTest, EachChannelHearsItsOwn) {
  auto loop = MakeLoop();
  ASSERT_TRUE(loop->Start().ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        auto sink = std::make_shared<Collector>();
        const uint64_t channel = loop->NewChannel();
        ASSERT_TRUE(loop->Post({channel, sink, {Open(channel)}}));
        EXPECT_EQ(sink->WaitFor(1)[0].channel, channel);
        loop->PostUnrefusable({channel, nullptr, {engine::ChannelClosed{channel}}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(EngineLoopTest, AStoreThatCannotBeUsedIsTheAnswerOfStart) {
  auto loop = MakeLoop(absl::UnavailableError("newer data"));
  EXPECT_EQ(loop->Start().message(), "newer data");
  loop->Stop();
}

TEST_F(EngineLoopTest, DrainingEndsEveryStreamBeforeItIsDone) {
  auto loop = MakeLoop();
  ASSERT_TRUE(loop->Start().ok());
  auto sink = std::make_shared<Collector>();
  const uint64_t channel = loop->NewChannel();
  ASSERT_TRUE(loop->Post({channel, sink, {Open(channel)}}));
  sink->WaitFor(1);
  loop->PostUnrefusable({0, nullptr, {engine::Drain{clock_.Now(), absl::Seconds(10)}}});
  drained_.get_future().wait();
  const std::vector<engine::Event> events = sink->WaitFor(3);
  EXPECT_TRUE(std::holds_alternative<engine::Draining>(events[1].body));
  EXPECT_EQ(ReasonOf(std::get<engine::EndStream>(events[2].body).status), Reason::kDraining);
  EXPECT_FALSE(serving_);
}

TEST_F(EngineLoopTest, PostingAfterTheEndIsHarmless) {
  auto loop = MakeLoop();
  ASSERT_TRUE(loop->Start().ok());
  loop->Stop();
  loop->Stop();
  loop->PostUnrefusable({1, nullptr, {engine::ChannelClosed{1}}});
}

TEST(RandomIds, AreOf26CharactersAndDiffer) {
  RandomIds ids;
  const std::string one = ids.NewId();
  EXPECT_EQ(one.size(), 26u);
  EXPECT_EQ(one.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567"), std::string::npos);
  EXPECT_EQ(ids.NewShortId().size(), 15u);
  EXPECT_NE(ids.NewShortId(), ids.NewShortId());

  // More than one call to the kernel fetches, and on two threads.
  constexpr size_t kEach = 100;
  std::set<std::string> of_thread;
  std::set<std::string> all = {one};
  std::thread other([&] {
    for (size_t i = 0; i < kEach; ++i) of_thread.insert(ids.NewId());
  });
  for (size_t i = 0; i < kEach; ++i) all.insert(ids.NewId());
  other.join();
  all.merge(of_thread);
  EXPECT_EQ(all.size(), 1 + 2 * kEach);
}

}  // namespace
}  // namespace holdfast::server
