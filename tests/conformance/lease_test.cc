// SPDX-License-Identifier: Apache-2.0
//
// Leases: renewal, expiry, the limit of a hold's life.
#include <gmock/gmock.h>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(150);

class LeaseTest : public StoreTest {
 protected:
  bool WaitUntilHolders(size_t n) {
    return loop_.RunUntil([&] {
      return Expect<KeyReport>(InspectOp{{"default", "k"}}).holders.size() == n;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, LeaseTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LeaseTest, AHoldThatNobodyRenewsEnds) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = kShort;
  const BootTime before = loop_.clock().Now();
  const Granted first = Expect<Granted>(op);
  const Granted next = AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5));
  EXPECT_GE(loop_.clock().Now() - before, kShort - kClockTolerance) << "the lease was cut short";
  EXPECT_GT(next.token, first.token);
  EXPECT_TRUE(Expect<HoldGone>(Release(op.hold)).held_by_other);
  EXPECT_TRUE(Expect<HoldGone>(RenewOp{op.hold, absl::Seconds(1)}).held_by_other);
}

TEST_P(LeaseTest, ARenewedHoldLivesOn) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = kShort;
  Expect<Granted>(op);
  const Renewed renewed = Expect<Renewed>(RenewOp{op.hold, absl::Seconds(20)});
  EXPECT_EQ(renewed.lease_remaining, absl::Seconds(20));
  EXPECT_EQ(renewed.max_hold_remaining, absl::InfiniteDuration());
  const BootTime end = loop_.clock().Now() + kShort + absl::Milliseconds(50);
  loop_.RunUntil([&] { return loop_.clock().Now() > end; });
  EXPECT_EQ(Expect<Busy>(Acquire(Hold("k", "b"))).holders.size(), 1u);
}

TEST_P(LeaseTest, ARenewalNeverMovesADeadlineBack) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  EXPECT_GT(Expect<Renewed>(RenewOp{Hold("k", "a"), kShort}).lease_remaining, absl::Seconds(15));
}

TEST_P(LeaseTest, RenewingWhatIsGoneSaysSo) {
  EXPECT_FALSE(Expect<HoldGone>(RenewOp{Hold("k", "a"), kShort}).held_by_other);
  Expect<Granted>(Acquire(Hold("k", "b")));
  const HoldGone gone = Expect<HoldGone>(RenewOp{Hold("k", "a"), kShort});
  EXPECT_TRUE(gone.held_by_other);
  EXPECT_EQ(gone.owner_count, 0u);
}

TEST_P(LeaseTest, ManyRenewalsAreAnsweredEach) {
  constexpr int kKeys = 300;
  std::vector<uint64_t> ids;
  for (int i = 0; i < kKeys; ++i) {
    if (i % 3 != 0) client_->Submit(Acquire(Hold("k" + std::to_string(i), "a")));
  }
  for (int i = 0; i < kKeys; ++i) {
    ids.push_back(client_->Submit(RenewOp{Hold("k" + std::to_string(i), "a"), absl::Seconds(30)}));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Result result = client_->Wait(ids[i]);
    if (i % 3 == 0) {
      As<HoldGone>(result);
    } else {
      EXPECT_EQ(As<Renewed>(result).lease_remaining, absl::Seconds(30));
    }
  }
}

TEST_P(LeaseTest, ARenewalAmongOtherRequestsKeepsItsPlace) {
  const HoldRef hold = Hold("k", "a");
  const uint64_t acquired = client_->Submit(Acquire(hold));
  const uint64_t renewed = client_->Submit(RenewOp{hold, absl::Seconds(30)});
  const uint64_t released = client_->Submit(Release(hold));
  const uint64_t gone = client_->Submit(RenewOp{hold, absl::Seconds(30)});
  As<Granted>(client_->Wait(acquired));
  As<Renewed>(client_->Wait(renewed));
  As<Released>(client_->Wait(released));
  As<HoldGone>(client_->Wait(gone));
}

TEST_P(LeaseTest, OneHoldsRenewalsKeepNoOtherAlive) {
  AcquireOp one = Acquire(Hold("k", "a", "s1"));
  Expect<Granted>(one);
  AcquireOp two = Acquire(Hold("k", "a", "s2"));
  two.lease = kShort;
  EXPECT_EQ(Expect<Granted>(two).owner_count, 2u);
  Expect<Renewed>(RenewOp{one.hold, absl::Seconds(20)});
  ASSERT_TRUE(WaitUntilHolders(1));
  EXPECT_EQ(Expect<HoldGone>(RenewOp{two.hold, absl::Seconds(20)}).owner_count, 1u);
  EXPECT_EQ(Expect<Granted>(one).owner_count, 2u) << "the dead hold still counts";
  EXPECT_TRUE(Expect<Released>(Release(one.hold, ReleaseKind::kAll)).freed);
}

TEST_P(LeaseTest, AShorterSecondHoldDoesNotShortenTheFirst) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  AcquireOp two = Acquire(Hold("k", "a", "s2"));
  two.lease = kShort;
  Expect<Granted>(two);
  EXPECT_FALSE(Expect<Released>(Release(two.hold)).freed);
  const BootTime end = loop_.clock().Now() + kShort + absl::Milliseconds(50);
  loop_.RunUntil([&] { return loop_.clock().Now() > end; });
  EXPECT_EQ(Expect<Busy>(Acquire(Hold("k", "b"))).holders.size(), 1u);
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a", "s1"))).freed);
}

TEST_P(LeaseTest, TheFirstHoldMayEndBeforeTheSecond) {
  AcquireOp one = Acquire(Hold("k", "a", "s1"));
  one.lease = kShort;
  Expect<Granted>(one);
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  ASSERT_TRUE(WaitUntilHolders(1));
  EXPECT_EQ(Expect<HoldGone>(Release(one.hold)).owner_count, 1u);
  const Released last = Expect<Released>(Release(Hold("k", "a", "s2")));
  EXPECT_TRUE(last.freed);
  EXPECT_EQ(last.owner_count, 0u);
}

TEST_P(LeaseTest, MaxHoldLimitsGrantRenewalAndReentry) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.max_hold = absl::Seconds(5);
  const Granted granted = Expect<Granted>(op);
  EXPECT_EQ(granted.lease_remaining, absl::Seconds(5));
  EXPECT_EQ(granted.max_hold_remaining, absl::Seconds(5));
  const Renewed renewed = Expect<Renewed>(RenewOp{op.hold, absl::Seconds(30)});
  EXPECT_LE(renewed.lease_remaining, absl::Seconds(5));
  EXPECT_LE(renewed.max_hold_remaining, absl::Seconds(5));
  op.max_hold = absl::Seconds(50);
  const Granted again = Expect<Granted>(op);
  EXPECT_LE(again.lease_remaining, absl::Seconds(5));
  EXPECT_LE(again.max_hold_remaining, absl::Seconds(5));
  EXPECT_GT(again.max_hold_remaining, absl::Seconds(3));
}

TEST_P(LeaseTest, MaxHoldEndsARenewedHold) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.max_hold = kShort;
  Expect<Granted>(op);
  const BootTime end = loop_.clock().Now() + absl::Seconds(5);
  while (loop_.clock().Now() < end) {
    const Result result = client_->Ask(RenewOp{op.hold, absl::Seconds(20)});
    if (std::holds_alternative<HoldGone>(result)) break;
    EXPECT_LE(As<Renewed>(result).lease_remaining, kShort);
  }
  EXPECT_LT(loop_.clock().Now(), end);
  Expect<Granted>(Acquire(Hold("k", "b")));
}

TEST_P(LeaseTest, BusySaysWhenTheKeyCanBecomeFree) {
  AcquireOp one = Acquire(Hold("k", "a", "s1"));
  one.lease = absl::Seconds(10);
  Expect<Granted>(one);
  AcquireOp two = Acquire(Hold("k", "a", "s2"));
  two.lease = absl::Seconds(40);
  Expect<Granted>(two);
  const Busy busy = Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_GT(busy.free_in, absl::Seconds(35));
  EXPECT_LE(busy.free_in, absl::Seconds(40));
}

}  // namespace
}  // namespace holdfast::testing
