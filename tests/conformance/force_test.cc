// SPDX-License-Identifier: Apache-2.0
//
// What an operator may do to holds of others: fix their end, or end them.
#include <gmock/gmock.h>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

class ForceTest : public StoreTest {
 protected:
  Forced Force(const std::string& hold_id, bool immediate) {
    return Expect<Forced>(ForceOp{{"default", "k"}, hold_id, immediate});
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, ForceTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ForceTest, AFreeKeyHasNothingToEnd) {
  for (const bool immediate : {false, true}) {
    const Forced forced = Force("", immediate);
    EXPECT_EQ(forced.holds, 0u);
    EXPECT_EQ(forced.over_in, absl::ZeroDuration());
    EXPECT_THAT(forced.holders, ::testing::IsEmpty());
  }
}

TEST_P(ForceTest, AForcedHoldLastsUntilItsDeadlineAndIsNotRenewedAnyMore) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(400);
  op.note = "why";
  Expect<Granted>(op);
  const Forced forced = Force("", /*immediate=*/false);
  EXPECT_EQ(forced.holds, 1u);
  ASSERT_EQ(forced.holders.size(), 1u);
  EXPECT_EQ(forced.holders[0].hold_id, op.hold.hold_id);
  EXPECT_EQ(forced.holders[0].note, "why");
  EXPECT_GT(forced.over_in, absl::ZeroDuration());
  EXPECT_LE(forced.over_in, absl::Milliseconds(400));
  const Renewed renewed = Expect<Renewed>(RenewOp{op.hold, absl::Seconds(20)});
  EXPECT_LE(renewed.lease_remaining, absl::Milliseconds(400));
  EXPECT_LE(renewed.max_hold_remaining, absl::Milliseconds(400));
  op.lease = absl::Seconds(20);
  EXPECT_LE(Expect<Granted>(op).lease_remaining, absl::Milliseconds(400)) << "nor by re-entry";
  Expect<Busy>(Acquire(Hold("k", "b")));
  AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5));
}

TEST_P(ForceTest, AForcedHoldCanStillBeReleased) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Force("", /*immediate=*/false);
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a"))).freed);
}

TEST_P(ForceTest, ImmediateEndsAllHoldsAtOnceAndWakesWhoWaits) {
  const Granted first = Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  Expect<Busy>(waiting);
  const Forced forced = Force("", /*immediate=*/true);
  EXPECT_EQ(forced.holds, 2u);
  EXPECT_EQ(forced.over_in, absl::ZeroDuration());
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
  EXPECT_GT(Expect<Granted>(waiting).token, first.token);
  EXPECT_TRUE(Expect<HoldGone>(RenewOp{Hold("k", "a", "s1"), absl::Seconds(20)}).held_by_other);
  EXPECT_TRUE(Expect<HoldGone>(Release(Hold("k", "a", "s2"))).held_by_other);
}

TEST_P(ForceTest, OneHoldOfTwoCanBeEnded) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  EXPECT_EQ(Force("no-such-hold", /*immediate=*/true).holds, 0u);
  EXPECT_EQ(Force(Hold("k", "a", "s1").hold_id, /*immediate=*/true).holds, 1u);
  Expect<Busy>(Acquire(Hold("k", "b")));
  Expect<HoldGone>(Release(Hold("k", "a", "s1")));
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a", "s2"))).freed);
}

TEST_P(ForceTest, AMinHoldKeepsTheKeyUnlessItIsFreedAtOnce) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.min_hold = absl::Seconds(20);
  Expect<Granted>(op);
  EXPECT_GT(Force("", /*immediate=*/false).over_in, absl::Seconds(15));
  EXPECT_FALSE(Expect<Released>(Release(op.hold)).freed);
  EXPECT_GT(Force("", /*immediate=*/false).over_in, absl::Seconds(15)) << "released, kept back";
  Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_EQ(Force("", /*immediate=*/true).over_in, absl::ZeroDuration());
  AcquireOp next = Acquire(Hold("k", "b"));
  next.min_hold = absl::Seconds(20);
  Expect<Granted>(next);
  EXPECT_EQ(Force("", /*immediate=*/true).holds, 1u);
  Expect<Granted>(Acquire(Hold("k", "c")));
}

TEST_P(ForceTest, ReadersAndPermitsCanBeEndedOneByOneOrTogether) {
  for (const Mode mode : {Mode::kShared, Mode::kPermit}) {
    AcquireOp a = Acquire(Hold("k", "a"));
    a.mode = mode;
    a.limit = mode == Mode::kPermit ? 2 : 0;
    AcquireOp b = a;
    b.hold = Hold("k", "b");
    Expect<Granted>(a);
    Expect<Granted>(b);
    EXPECT_EQ(Force("", /*immediate=*/false).holds, 2u);
    EXPECT_LE(Expect<Renewed>(RenewOp{a.hold, absl::Seconds(30)}).lease_remaining,
              absl::Seconds(20));
    const Forced one = Force(a.hold.hold_id, /*immediate=*/true);
    EXPECT_EQ(one.holds, 1u);
    ASSERT_EQ(one.holders.size(), 1u);
    EXPECT_EQ(one.holders[0].owner, a.hold.owner);
    EXPECT_EQ(one.holders[0].mode, mode);
    Expect<HoldGone>(Release(a.hold));
    Expect<Granted>(a);
    EXPECT_EQ(Force("", /*immediate=*/true).holds, 2u);
    EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  }
}

}  // namespace
}  // namespace holdfast::testing
