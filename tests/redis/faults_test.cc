// SPDX-License-Identifier: Apache-2.0
//
// Lost scripts, connections and servers: callers see nothing of the first, and
// the truth about the others.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/redis/redis_test.h"
#include "tests/support/pipe_proxy.h"

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;
using Kind = StoreEvent::Kind;

class FaultsTest : public RedisTest {
 protected:
  void SetUp() override {
    StartServer();
    if (server_ != nullptr) client_ = Up(NoGrace());
  }
  void TearDown() override {
    EXPECT_TRUE(client_ == nullptr || client_->unexpected_replies() == 0);
  }

  std::unique_ptr<StoreClient> client_;
};

TEST_F(FaultsTest, FlushedScriptsAreInvisible) {
  for (int round = 0; round < 60; ++round) {
    std::vector<uint64_t> ids;
    for (int i = 0; i < 20; ++i) {
      const HoldRef hold = Hold(absl::StrCat("k", i), "a");
      ids.push_back(client_->Submit(Acquire(hold)));
      ids.push_back(client_->Submit(RenewOp{hold, absl::Seconds(5)}));
      ids.push_back(client_->Submit(InspectOp{hold.name}));
      ids.push_back(client_->Submit(Release(hold)));
      if (i % 7 == round % 7) {
        client_->store().Flush();
        server_->Run({"SCRIPT", "FLUSH"});
      }
    }
    for (size_t i = 0; i < ids.size(); i += 4) {
      As<Granted>(client_->Wait(ids[i]));
      As<Renewed>(client_->Wait(ids[i + 1]));
      EXPECT_EQ(As<KeyReport>(client_->Wait(ids[i + 2])).holders.size(), 1u);
      EXPECT_TRUE(As<Released>(client_->Wait(ids[i + 3])).freed);
    }
    if (HasFailure()) break;
  }
  EXPECT_FALSE(client_->HasEvent(Kind::kDown));
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(FaultsTest, FlushedScriptsDoNotChangeTheOrderOfAKeysRequests) {
  const HoldRef hold = Hold("k", "a");
  std::vector<uint64_t> ids;
  // Releases follow their acquires in a later turn, while those may be waiting for their script.
  for (int turn = 0; turn < 2000; ++turn) {
    ids.push_back(turn % 2 == 0 ? client_->Submit(Acquire(hold)) : client_->Submit(Release(hold)));
    client_->store().Flush();
    if (turn % 97 == 0) server_->Run({"SCRIPT", "FLUSH"});
    if (turn % 3 == 0) uv_run(loop_.uv(), UV_RUN_NOWAIT);
  }
  for (size_t i = 0; i < ids.size(); i += 2) {
    EXPECT_EQ(As<Granted>(client_->Wait(ids[i])).hold_count, 1u);
    EXPECT_TRUE(As<Released>(client_->Wait(ids[i + 1])).freed);
    if (HasFailure()) break;
  }
}

TEST_F(FaultsTest, KilledConnectionsAreAnsweredHonestlyAndComeBack) {
  int lost = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::pair<HoldRef, uint64_t>> asked;
    for (int i = 0; i < 200; ++i) {
      const HoldRef hold = Hold(absl::StrCat("k", i), absl::StrCat("r", round));
      asked.emplace_back(hold, client_->Submit(Acquire(hold, absl::Seconds(20), "op")));
      if (i == 20 * round) {
        client_->store().Flush();
        server_->Run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      }
    }
    std::vector<HoldRef> unsure;
    for (const auto& [hold, id] : asked) {
      const Result result = client_->Wait(id);
      if (std::holds_alternative<Granted>(result)) {
        unsure.push_back(hold);
      } else {
        const StoreFailure failure = As<StoreFailure>(result);
        EXPECT_EQ(failure.kind, StoreFailureKind::kUnreachable);
        ++lost;
        if (failure.maybe_applied) unsure.push_back(hold);
      }
    }
    ASSERT_TRUE(client_->WaitEvent(Kind::kDown).has_value());
    ASSERT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
    // What was carried out is undone; then nothing may be left.
    std::vector<uint64_t> undone;
    for (const HoldRef& hold : unsure) {
      undone.push_back(client_->Submit(Release(hold, ReleaseKind::kUndo, "op")));
    }
    for (uint64_t id : undone)
      EXPECT_FALSE(std::holds_alternative<StoreFailure>(client_->Wait(id)));
    EXPECT_EQ(KeysLeft(), 0) << "round " << round;
    if (HasFailure()) return;
  }
  EXPECT_GT(lost, 0) << "no request was in flight when its connection was killed";
}

TEST_F(FaultsTest, NothingThatLayUnreadIsCarriedOutLater) {
  client_.reset();
  RedisStoreOptions options = NoGrace();
  options.reply_timeout = absl::Milliseconds(200);
  client_ = Up(options);
  server_->Stop();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3000; ++i) {
    ids.push_back(client_->Submit(Acquire(Hold(absl::StrCat("k", i), "a"), absl::Seconds(20))));
  }
  for (uint64_t id : ids) {
    const StoreFailure failure = As<StoreFailure>(client_->Wait(id));
    EXPECT_EQ(failure.kind, StoreFailureKind::kUnreachable);
    EXPECT_TRUE(failure.maybe_applied);
    if (HasFailure()) break;
  }
  const auto down = client_->WaitEvent(Kind::kDown);
  server_->Continue();
  ASSERT_TRUE(down.has_value());
  EXPECT_THAT(down->detail, HasSubstr("no reply"));
  ASSERT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
  const int64_t carried_out = KeysLeft();
  for (int i = 0; i < 200; ++i) server_->Run({"PING"});
  EXPECT_EQ(KeysLeft(), carried_out) << "requests of the lost connection are still carried out";
  As<Granted>(client_->Ask(Acquire(Hold("fresh", "b"))));
}

TEST_F(FaultsTest, WhatArrivesOverALostConnectionIsNotCarriedOut) {
  const std::string path = server_->folder() + "/proxy.sock";
  PipeProxy proxy(&loop_, path, server_->socket_path());
  RedisStoreOptions options = NoGrace();
  options.url = "redis+unix://" + path;
  options.reply_timeout = absl::Milliseconds(200);
  client_ = Up(options);
  proxy.HoldBack();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    ids.push_back(client_->Submit(Acquire(Hold(absl::StrCat("k", i), "a"), absl::Seconds(20))));
  }
  for (uint64_t id : ids) EXPECT_TRUE(As<StoreFailure>(client_->Wait(id)).maybe_applied);
  ASSERT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
  As<Granted>(client_->Ask(Acquire(Hold("k0", "b"))));
  As<Released>(client_->Ask(Release(Hold("k0", "b"))));
  proxy.Deliver();
  for (int i = 0; i < 20; ++i) As<KeyReport>(client_->Ask(InspectOp{{"default", "k0"}}));
  EXPECT_EQ(KeysLeft(), 0);
  client_.reset();
}

TEST_F(FaultsTest, AServerThatIsGoneIsToldAtOnceAndFoundAgain) {
  server_->Kill();
  ASSERT_TRUE(client_->WaitEvent(Kind::kDown).has_value());
  const StoreFailure failure = As<StoreFailure>(client_->Ask(Acquire(Hold("k", "a"))));
  EXPECT_EQ(failure.kind, StoreFailureKind::kUnreachable);
  EXPECT_FALSE(failure.maybe_applied);
  ASSERT_TRUE(server_->Launch());
  EXPECT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
}

TEST_F(FaultsTest, AServerThatComesLaterIsFound) {
  client_.reset();
  server_->Kill();
  client_ = Begin(NoGrace());
  ASSERT_TRUE(client_->WaitEvent(Kind::kDown).has_value());
  ASSERT_TRUE(server_->Launch());
  ASSERT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
  As<Granted>(client_->Ask(Acquire(Hold("k", "a"))));
}

TEST_F(FaultsTest, ReleasesWakeWaitersOfOtherDaemons) {
  auto other = Up(NoGrace());
  const HoldRef a = Hold("k", "a");
  As<Granted>(client_->Ask(Acquire(a, absl::Seconds(20))));
  As<Subscribed>(other->Ask(SubscribeOp{a.name}));
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  As<Busy>(other->Ask(waiting));
  As<Released>(client_->Ask(Release(a)));
  ASSERT_TRUE(other->WaitEvent(Kind::kWake).has_value());
  As<Granted>(other->Ask(waiting));
}

TEST_F(FaultsTest, ALostSubscriptionIsRenewedAndWakesForWhatWasMissed) {
  const HoldRef a = Hold("k", "a");
  As<Granted>(client_->Ask(Acquire(a, absl::Seconds(20))));
  As<Subscribed>(client_->Ask(SubscribeOp{a.name}));
  server_->Run({"CLIENT", "KILL", "TYPE", "pubsub"});
  const auto wake = client_->WaitEvent(Kind::kWake);
  ASSERT_TRUE(wake.has_value());
  EXPECT_EQ(wake->name, a.name);
  EXPECT_FALSE(client_->HasEvent(Kind::kDown));
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  As<Busy>(client_->Ask(waiting));
  As<Released>(client_->Ask(Release(a)));
  EXPECT_TRUE(client_->WaitEvent(Kind::kWake).has_value());
}

TEST_F(FaultsTest, SubscriptionsAreGoneWithTheMainConnection) {
  const HoldRef a = Hold("k", "a");
  As<Subscribed>(client_->Ask(SubscribeOp{a.name}));
  server_->Run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(client_->WaitEvent(Kind::kDown).has_value());
  ASSERT_TRUE(client_->WaitEvent(Kind::kUp).has_value());
  EXPECT_EQ(server_->Run({"PUBSUB", "CHANNELS"}).size(), 0u);
  As<Subscribed>(client_->Ask(SubscribeOp{a.name}));
}

TEST_F(FaultsTest, AStoppedStoreAnswersNothingMore) {
  const uint64_t id = client_->Submit(Acquire(Hold("k", "a")));
  client_->store().Flush();
  client_->StopStore();
  loop_.RunFor(absl::Milliseconds(50));
  EXPECT_FALSE(client_->Answered(id));
}

}  // namespace
}  // namespace holdfast::testing
