// SPDX-License-Identifier: Apache-2.0
//
// release_delay: what an abnormal end keeps back, and that a release does not.
#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(150);
constexpr absl::Duration kDelay = absl::Milliseconds(400);

class DelayTest : public StoreTest {
 protected:
  AcquireOp Delayed(const HoldRef& hold, absl::Duration delay = kDelay) {
    AcquireOp op = Acquire(hold);
    op.release_delay = delay;
    return op;
  }
  KeyReport Look() { return Expect<KeyReport>(InspectOp{{"default", "k"}}); }
};
INSTANTIATE_TEST_SUITE_P(Stores, DelayTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(DelayTest, AReleaseIsNotDelayed) {
  Expect<Granted>(Delayed(Hold("k", "a")));
  const Released released = Expect<Released>(Release(Hold("k", "a")));
  EXPECT_TRUE(released.freed);
  EXPECT_EQ(released.kept_for, absl::ZeroDuration());
  AcquireOp op = Delayed(Hold("k", "b"));
  op.op_id = "op-1";
  Expect<Granted>(op);
  EXPECT_TRUE(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-1")).freed);
  EXPECT_TRUE(Look().free());
}

TEST_P(DelayTest, AHoldThatEndsAbnormallyKeepsTheKeyBack) {
  Expect<Granted>(Delayed(Hold("k", "a")));
  const BootTime before = loop_.clock().Now();
  const Released released = Expect<Released>(Release(Hold("k", "a"), ReleaseKind::kAll));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.owner_count, 0u);
  EXPECT_GT(released.kept_for, absl::ZeroDuration());
  EXPECT_LE(released.kept_for, kDelay);
  const Busy busy = Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_TRUE(busy.holders.empty());
  EXPECT_LE(busy.free_in, kDelay);
  EXPECT_GT(Look().kept_for, absl::ZeroDuration());
  AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5));
  EXPECT_GE(loop_.clock().Now() - before, kDelay - kClockTolerance);
}

TEST_P(DelayTest, ALeaseThatRanOutKeepsTheKeyBack) {
  AcquireOp op = Delayed(Hold("k", "a"));
  op.lease = kShort;
  const BootTime before = loop_.clock().Now();
  Expect<Granted>(op);
  const absl::Duration free_in = Expect<Busy>(Acquire(Hold("k", "b"))).free_in;
  EXPECT_GT(free_in, kShort);
  EXPECT_LE(free_in, kShort + kDelay);
  ASSERT_TRUE(loop_.RunUntil([&] { return Look().holders.empty(); }));
  EXPECT_LT(loop_.clock().Now() - before, kShort + kDelay) << "kept back, but held by nobody";
  EXPECT_FALSE(Look().free());
  EXPECT_FALSE(Expect<HoldGone>(Release(op.hold)).held_by_other);
  EXPECT_TRUE(Expect<Busy>(Delayed(Hold("k", "a"))).holders.empty()) << "not even to its owner";
  AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5));
  EXPECT_GE(loop_.clock().Now() - before, kShort + kDelay - kClockTolerance);
}

TEST_P(DelayTest, ARenewalMovesTheDelayOn) {
  AcquireOp op = Delayed(Hold("k", "a"));
  op.lease = kShort;
  Expect<Granted>(op);
  EXPECT_EQ(Expect<Renewed>(RenewOp{op.hold, absl::Seconds(20)}).lease_remaining,
            absl::Seconds(20));
  EXPECT_GT(Expect<Busy>(Acquire(Hold("k", "b"))).free_in, absl::Seconds(10));
  Expect<Renewed>(RenewOp{op.hold, absl::Seconds(20)});
  const Released released = Expect<Released>(Release(op.hold));
  EXPECT_TRUE(released.freed);
}

TEST_P(DelayTest, AReentryHasTheDelayToo) {
  Expect<Granted>(Delayed(Hold("k", "a")));
  Expect<Granted>(Delayed(Hold("k", "a")));
  Expect<Granted>(Delayed(Hold("k", "a", "s2")));
  EXPECT_EQ(Expect<Released>(Release(Hold("k", "a"))).hold_count, 1u);
  EXPECT_EQ(Expect<Released>(Release(Hold("k", "a"), ReleaseKind::kAll)).owner_count, 1u);
  const Released last = Expect<Released>(Release(Hold("k", "a", "s2")));
  EXPECT_FALSE(last.freed) << "the first hold's end keeps the key back";
  EXPECT_GT(last.kept_for, absl::ZeroDuration());
}

TEST_P(DelayTest, ADeadReaderKeepsWritersOut) {
  AcquireOp op = Delayed(Hold("k", "a"));
  op.mode = Mode::kShared;
  Expect<Granted>(op);
  Expect<Released>(Release(op.hold, ReleaseKind::kAll));
  Expect<Busy>(Acquire(Hold("k", "w")));
  AcquireOp read = Acquire(Hold("k", "b"));
  read.mode = Mode::kShared;
  Expect<Granted>(read);
  EXPECT_GT(Expect<Released>(Release(read.hold)).kept_for, absl::ZeroDuration());
  AcquireWhenFree(Acquire(Hold("k", "w")), absl::Seconds(5));
}

TEST_P(DelayTest, ADeadPermitStaysTaken) {
  AcquireOp op = Delayed(Hold("k", "a"));
  op.mode = Mode::kPermit;
  op.limit = 2;
  op.lease = kShort;
  const BootTime before = loop_.clock().Now();
  Expect<Granted>(op);
  op.hold = Hold("k", "b");
  op.lease = absl::Seconds(20);
  Expect<Granted>(op);
  ASSERT_TRUE(loop_.RunUntil([&] { return Look().holders.size() == 1; }));
  op.hold = Hold("k", "c");
  EXPECT_LE(Expect<Busy>(op).free_in, kDelay);
  AcquireWhenFree(op, absl::Seconds(5));
  EXPECT_GE(loop_.clock().Now() - before, kShort + kDelay - kClockTolerance);
  Expect<Released>(Release(Hold("k", "b"), ReleaseKind::kAll));
  op.hold = Hold("k", "d");
  Expect<Busy>(op);
  AcquireWhenFree(op, absl::Seconds(5));
}

}  // namespace
}  // namespace holdfast::testing
