// SPDX-License-Identifier: Apache-2.0
//
// The line of a key, which all daemons on a store share. Where a store serves one daemon only, that
// one speaks for the others.
#include <gmock/gmock.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

using limits::kClaimTime;

class LineTest : public StoreTest {
 protected:
  // One daemon's view of the store.
  StoreClient& Daemon(const std::string& name) {
    if (!environment_->shared()) return *client_;
    std::unique_ptr<StoreClient>& client = daemons_[name];
    if (client == nullptr) {
      client = std::make_unique<StoreClient>(&loop_, environment_->MakeStore(&loop_));
      EXPECT_TRUE(client->StartAndWait());
      client->Ask(SubscribeOp{{"default", "k"}});
    }
    return *client;
  }
  void SetUp() override {
    StoreTest::SetUp();
    Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  }

  // A waiter of that daemon; FIFO where it has a number.
  AcquireOp Waiter(const std::string& daemon, uint64_t number = 0) {
    AcquireOp op = Acquire(Hold("k", absl::StrCat("waiter-", daemon, number)));
    op.will_wait = true;
    op.place = {daemon, number};
    op.enters = true;
    op.leaves = true;
    return op;
  }
  template <typename T>
  T Do(const std::string& daemon, decltype(StoreRequest::op) op) {
    return As<T>(Daemon(daemon).Ask(std::move(op)));
  }
  void Wait(const std::string& daemon, uint64_t number = 0) {
    Do<Busy>(daemon, Waiter(daemon, number));
  }
  bool Woken(const std::string& daemon, const std::string& by_name) {
    while (const auto wake = Daemon(daemon).WaitEvent(StoreEvent::Kind::kWake, absl::Seconds(2))) {
      if (wake->daemon == by_name) return true;
    }
    return false;
  }
  // Somebody holds the key, and gives it back when told to.
  void Take() { Expect<Granted>(Acquire(Hold("k", "a"))); }
  Released Give() {
    Daemon("a");
    return Expect<Released>(Release(Hold("k", "a")));
  }
  Released PassOn(const std::string& daemon, PassOnOp::Kind kind, Place place) {
    return Do<Released>(daemon, PassOnOp{{"default", "k"}, place, kind});
  }

  std::map<std::string, std::unique_ptr<StoreClient>> daemons_;
};
INSTANTIATE_TEST_SUITE_P(Stores, LineTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LineTest, AReleasedKeyIsKeptForTheFirstInLineWhoIsTold) {
  Take();
  Wait("b");
  Wait("c");
  const Released released = Give();
  EXPECT_EQ(released.handed_to, "b");
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.kept_for, kClaimTime);
  EXPECT_TRUE(Woken("b", "b"));

  const Busy busy = Do<Busy>("c", Waiter("c"));
  EXPECT_EQ(busy.handed_to, "b");
  EXPECT_LE(busy.free_in, kClaimTime);
  Expect<Busy>(Acquire(Hold("k", "newcomer")));
  EXPECT_TRUE(Do<Granted>("b", Waiter("b")).others_first) << "c stands there";
  EXPECT_EQ(Do<Released>("b", Release(Waiter("b").hold)).handed_to, "c");
  EXPECT_FALSE(Do<Granted>("c", Waiter("c")).others_first);
  EXPECT_TRUE(Do<Released>("c", Release(Waiter("c").hold)).freed) << "nobody is left in line";
}

TEST_P(LineTest, AnAttemptInTheSameStepAsTheReleaseGoesFirst) {
  Take();
  Wait("b");
  const uint64_t release = client_->Submit(Release(Hold("k", "a")));
  const uint64_t attempt = client_->Submit(Acquire(Hold("k", "another")));
  EXPECT_EQ(As<Released>(client_->Wait(release)).handed_to, "");
  As<Granted>(client_->Wait(attempt));
  EXPECT_EQ(Expect<Released>(Release(Hold("k", "another"))).handed_to, "b");
}

TEST_P(LineTest, AFifoAttemptInTheSameStepAsTheReleaseWaitsItsTurn) {
  Take();
  Wait("b", 7);
  Wait("c", 1);
  Daemon("c");
  StoreClient& daemon = environment_->shared() ? Daemon("a") : *client_;
  const uint64_t release = daemon.Submit(Release(Hold("k", "a")));
  const uint64_t attempt = daemon.Submit(Waiter("a", 3));
  As<Released>(daemon.Wait(release));
  EXPECT_EQ(As<Busy>(daemon.Wait(attempt)).handed_to, "b");
  EXPECT_TRUE(Woken("b", "b"));
  Do<Granted>("b", Waiter("b", 7));
  EXPECT_EQ(Do<Released>("b", Release(Waiter("b", 7).hold)).handed_to, "c");
  Do<Granted>("c", Waiter("c", 1));
  EXPECT_EQ(Do<Released>("c", Release(Waiter("c", 1).hold)).handed_to, "a") << "third in line";
}

TEST_P(LineTest, AFreeKeyGoesToABargingNewcomerAndNotToAFifoOne) {
  AcquireOp brief = Acquire(Hold("k", "a"));
  brief.lease = absl::Milliseconds(100);
  Expect<Granted>(brief);
  Wait("b", 1);
  ASSERT_TRUE(loop_.RunUntil([&] {
    return As<KeyReport>(client_->Ask(InspectOp{{"default", "k"}})).free();
  }));
  Daemon("b").ForgetEvents();  // one store tells of the expiry
  EXPECT_EQ(Do<Busy>("c", Waiter("c", 1)).handed_to, "b");
  EXPECT_TRUE(Woken("b", "b"));
  Do<Granted>("b", Waiter("b", 1));
  Do<Released>("b", Release(Waiter("b", 1).hold));
  Do<Granted>("c", Waiter("c", 1));
  Do<Released>("c", Release(Waiter("c", 1).hold));

  Expect<Granted>(brief);
  Wait("b");
  ASSERT_TRUE(loop_.RunUntil([&] {
    return As<KeyReport>(client_->Ask(InspectOp{{"default", "k"}})).free();
  }));
  Expect<Granted>(Acquire(Hold("k", "newcomer")));
}

TEST_P(LineTest, WhatIsNotClaimedInTimeGoesToTheNext) {
  Take();
  Wait("b");
  Wait("c");
  EXPECT_EQ(Give().handed_to, "b");
  EXPECT_EQ(PassOn("a", PassOnOp::Kind::kUnclaimed, {"b", 0}).handed_to, "") << "there is time";
  Released released;
  ASSERT_TRUE(loop_.RunUntil([&] {
    released = PassOn("a", PassOnOp::Kind::kUnclaimed, {"b", 0});
    return !released.handed_to.empty();
  }));
  EXPECT_EQ(released.handed_to, "c");
  Do<Granted>("c", Waiter("c"));
  // b was only slow: with its next sign of life it counts again, where it stood.
  Wait("b");
  EXPECT_EQ(Do<Released>("c", Release(Waiter("c").hold)).handed_to, "b");
}

TEST_P(LineTest, WhatWasClaimedIsNotPassedOn) {
  Take();
  Wait("b");
  Give();
  Do<Granted>("b", Waiter("b"));
  Wait("c");
  const Released released = PassOn("a", PassOnOp::Kind::kUnclaimed, {"b", 0});
  EXPECT_EQ(released.handed_to, "");
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(Do<Released>("b", Release(Waiter("b").hold)).handed_to, "c");
}

TEST_P(LineTest, WhoOnlyAsksForHisOwnKeyClaimsNone) {
  Take();
  Wait("b", 1);
  Give();
  AcquireOp probe = Waiter("b", 2);
  probe.only_reentry = true;
  probe.leaves = false;
  Do<Busy>("b", probe);
  EXPECT_EQ(Do<Busy>("c", Waiter("c", 1)).handed_to, "b");
  Do<Granted>("b", Waiter("b", 1));
}

TEST_P(LineTest, WhoeverGaveUpPassesTheKeyOnAtOnce) {
  Take();
  Wait("b");
  Wait("c", 1);
  Wait("c", 2);
  Give();
  EXPECT_EQ(PassOn("b", PassOnOp::Kind::kLeave, {"b", 0}).handed_to, "c");
  EXPECT_EQ(PassOn("c", PassOnOp::Kind::kLeave, {"c", 1}).handed_to, "") << "it has another one";
  EXPECT_TRUE(PassOn("c", PassOnOp::Kind::kLeaveAll, {"c", 0}).freed);
  Expect<Granted>(Acquire(Hold("k", "newcomer")));
}

TEST_P(LineTest, APlaceOfManyGoesToTheEndWhenOneOfThemIsServed) {
  Take();
  Wait("b");
  Wait("c");
  Give();
  AcquireOp one = Waiter("b");
  one.stays = true;
  EXPECT_TRUE(Do<Granted>("b", one).others_first);
  EXPECT_EQ(Do<Released>("b", Release(one.hold)).handed_to, "c");
  Do<Granted>("c", Waiter("c"));
  EXPECT_EQ(Do<Released>("c", Release(Waiter("c").hold)).handed_to, "b");
}

TEST_P(LineTest, AWaitingWriterKeepsReadersOffUntilItGivesUp) {
  AcquireOp read = Acquire(Hold("k", "reader"));
  read.mode = Mode::kShared;
  Expect<Granted>(read);
  Wait("b");
  AcquireOp late = Waiter("c");
  late.mode = Mode::kShared;
  Do<Busy>("c", late);
  Expect<Granted>(read).hold_id;  // who reads may read once more
  Daemon("c").ForgetEvents();
  PassOn("b", PassOnOp::Kind::kWriterGone, {"b", 0});
  EXPECT_TRUE(Woken("c", ""));
  Do<Granted>("c", late);
}

TEST_P(LineTest, ReadersOfAllDaemonsAreToldWhenAReadingPhaseBegins) {
  Take();
  AcquireOp read = Waiter("b");
  read.mode = Mode::kShared;
  Do<Busy>("b", read);
  AcquireOp other = Waiter("c");
  other.mode = Mode::kShared;
  Do<Busy>("c", other);
  Give();
  Daemon("c").ForgetEvents();
  Do<Granted>("b", read);
  EXPECT_TRUE(Woken("c", ""));
  Do<Granted>("c", other);
}

TEST_P(LineTest, TheOrderOfADaemonsOwnPlacesIsItsBusiness) {
  Take();
  Wait("b", 1);
  Wait("c", 1);
  Wait("b", 2);
  Give();
  Do<Granted>("b", Waiter("b", 2));  // it has forgotten the other
  EXPECT_EQ(Do<Released>("b", Release(Waiter("b", 2).hold)).handed_to, "c");
  Do<Granted>("c", Waiter("c", 1));
  EXPECT_TRUE(Do<Released>("c", Release(Waiter("c", 1).hold)).freed);
}

TEST_P(LineTest, AHundredPlacesOfADeadDaemonCostNoTime) {
  if (!environment_->shared()) GTEST_SKIP() << "the daemon would be dead itself";
  Take();
  for (uint64_t number = 1; number <= 100; ++number) Wait("dead", number);
  Wait("b", 1);
  Daemon("dead").StopStore();
  loop_.RunFor(limits::kDaemonSilence);
  const BootTime before = loop_.clock().Now();
  EXPECT_EQ(Give().handed_to, "b");
  Do<Granted>("b", Waiter("b", 1));
  EXPECT_LT(loop_.clock().Now() - before, absl::Seconds(1));
}

}  // namespace
}  // namespace holdfast::testing
