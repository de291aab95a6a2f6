// SPDX-License-Identifier: Apache-2.0
//
// Waiters are woken, not left to poll.
#include <gmock/gmock.h>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

class WakeTest : public StoreTest {
 protected:
  AcquireOp Waiting(const HoldRef& hold) {
    AcquireOp op = Acquire(hold);
    op.will_wait = true;
    return op;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, WakeTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(WakeTest, AReleaseWakesWhoSubscribed) {
  const HoldRef a = Hold("k", "a");
  Expect<Granted>(Acquire(a));
  Expect<Subscribed>(SubscribeOp{a.name});
  Expect<Busy>(Waiting(Hold("k", "b")));
  Expect<Released>(Release(a));
  const auto wake = client_->WaitEvent(StoreEvent::Kind::kWake);
  ASSERT_TRUE(wake.has_value());
  EXPECT_EQ(wake->name, a.name);
  Expect<Granted>(Acquire(Hold("k", "b")));
}

TEST_P(WakeTest, EachKindOfReleaseWakes) {
  const HoldRef a = Hold("k", "a");
  Expect<Subscribed>(SubscribeOp{a.name});
  for (ReleaseKind kind : {ReleaseKind::kOne, ReleaseKind::kAll, ReleaseKind::kUndo}) {
    AcquireOp op = Acquire(a);
    op.op_id = "op";
    op.note = "with a note";
    Expect<Granted>(op);
    Expect<Busy>(Waiting(Hold("k", "b")));
    client_->ForgetEvents();
    const bool undo = kind == ReleaseKind::kUndo;
    EXPECT_TRUE(Expect<Released>(Release(a, kind, undo ? "op" : "")).freed);
    EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
  }
}

TEST_P(WakeTest, AnAttemptBehindAReleaseInTheSameTurnGetsTheKey) {
  const HoldRef a = Hold("k", "a");
  const HoldRef b = Hold("k", "b");
  const int64_t token = Expect<Granted>(Acquire(a)).token;
  Expect<Subscribed>(SubscribeOp{a.name});
  Expect<Busy>(Waiting(b));
  const uint64_t release = client_->Submit(Release(a));
  const uint64_t attempt = client_->Submit(Acquire(b));
  EXPECT_TRUE(As<Released>(client_->Wait(release)).freed);
  EXPECT_GT(As<Granted>(client_->Wait(attempt)).token, token);
  // Whoever else waited is still told when that one releases.
  client_->ForgetEvents();
  Expect<Released>(Release(b));
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

TEST_P(WakeTest, AnAttemptBehindAReleaseThatTakesNothingWakesTheOthers) {
  const HoldRef a = Hold("k", "a");
  Expect<Granted>(Acquire(a));
  Expect<Subscribed>(SubscribeOp{a.name});
  Expect<Busy>(Waiting(Hold("k", "b")));
  AcquireOp probe = Acquire(Hold("k", "c"));
  probe.only_reentry = true;
  client_->ForgetEvents();
  client_->Submit(Release(a));
  client_->Submit(probe);
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

TEST_P(WakeTest, OtherKeysDoNotWake) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Granted>(Acquire(Hold("k2", "a")));
  Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  Expect<Busy>(Waiting(Hold("k", "b")));
  Expect<Busy>(Waiting(Hold("k2", "b")));
  Expect<Released>(Release(Hold("k2", "a")));
  Expect<Released>(Release(Hold("k", "a")));
  const auto wake = client_->WaitEvent(StoreEvent::Kind::kWake);
  ASSERT_TRUE(wake.has_value());
  EXPECT_EQ(wake->name.key, "k");
}

TEST_P(WakeTest, TheMarkGoesWithTheKeyToItsNextHolder) {
  const HoldRef a = Hold("k", "a");
  Expect<Granted>(Acquire(a));
  Expect<Subscribed>(SubscribeOp{a.name});
  Expect<Busy>(Waiting(Hold("k", "b")));
  Expect<Released>(Release(a));
  ASSERT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
  AcquireOp next = Acquire(Hold("k", "b"));
  next.others_wait = true;
  Expect<Granted>(next);
  client_->ForgetEvents();
  Expect<Released>(Release(next.hold));
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

TEST_P(WakeTest, AReleaseOfOneOfTwoHoldsFreesNothingAndTheLastOneWakes) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  Expect<Busy>(Waiting(Hold("k", "b")));
  Expect<Released>(Release(Hold("k", "a", "s1")));
  Expect<Busy>(Acquire(Hold("k", "b")));
  Expect<Released>(Release(Hold("k", "a", "s2")));
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

TEST_P(WakeTest, AfterUnsubscribingNothingWakes) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  Expect<Subscribed>(SubscribeOp{{"default", "k2"}});
  Expect<Busy>(Waiting(Hold("k", "b")));
  client_->Submit(UnsubscribeOp{{"default", "k"}});
  // Once this is confirmed, so is what was sent before it.
  Expect<Subscribed>(SubscribeOp{{"default", "k3"}});
  Expect<Released>(Release(Hold("k", "a")));
  Expect<Granted>(Acquire(Hold("k2", "a")));
  Expect<Busy>(Waiting(Hold("k2", "b")));
  Expect<Released>(Release(Hold("k2", "a")));
  const auto wake = client_->WaitEvent(StoreEvent::Kind::kWake);
  ASSERT_TRUE(wake.has_value());
  EXPECT_EQ(wake->name.key, "k2");
}

TEST_P(WakeTest, SubscribingAgainIsAnsweredEveryTime) {
  for (int i = 0; i < 20; ++i) {
    std::vector<uint64_t> ids;
    for (int j = 0; j < 3; ++j) ids.push_back(client_->Submit(SubscribeOp{{"default", "k"}}));
    client_->Submit(UnsubscribeOp{{"default", "k"}});
    ids.push_back(client_->Submit(SubscribeOp{{"default", "k"}}));
    for (uint64_t id : ids) As<Subscribed>(client_->Wait(id));
    if (i % 2 == 0) client_->Submit(UnsubscribeOp{{"default", "k"}});
  }
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Busy>(Waiting(Hold("k", "b")));
  Expect<Released>(Release(Hold("k", "a")));
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

}  // namespace
}  // namespace holdfast::testing
