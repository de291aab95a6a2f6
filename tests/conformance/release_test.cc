// SPDX-License-Identifier: Apache-2.0
//
// Giving back: counts, whole holds, undone commands, and who may not.
#include <gmock/gmock.h>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

class ReleaseTest : public StoreTest {
 protected:
  uint32_t CountOf(const std::string& key) {
    uint32_t count = 0;
    for (const HolderState& h : Expect<KeyReport>(InspectOp{{"default", key}}).holders) {
      count += h.count;
    }
    return count;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, ReleaseTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ReleaseTest, ReleasingTheLastCountFreesTheKey) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  const Released released = Expect<Released>(Release(Hold("k", "a")));
  EXPECT_TRUE(released.freed);
  EXPECT_EQ(released.owner_count, 0u);
  EXPECT_EQ(released.hold_count, 0u);
  EXPECT_EQ(released.kept_for, absl::ZeroDuration());
  EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  Expect<Granted>(Acquire(Hold("k", "b")));
}

TEST_P(ReleaseTest, OneReleaseGivesBackOneCount) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Granted>(Acquire(Hold("k", "a")));
  const Released released = Expect<Released>(Release(Hold("k", "a")));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.owner_count, 1u);
  EXPECT_EQ(released.hold_count, 1u);
  Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a"))).freed);
}

TEST_P(ReleaseTest, AllGivesBackTheWholeHold) {
  for (int i = 0; i < 3; ++i) Expect<Granted>(Acquire(Hold("k", "a")));
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a"), ReleaseKind::kAll)).freed);
  EXPECT_FALSE(Expect<HoldGone>(Release(Hold("k", "a"))).held_by_other);
}

TEST_P(ReleaseTest, EachSessionGivesBackOnlyItsOwn) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  const Released one = Expect<Released>(Release(Hold("k", "a", "s2"), ReleaseKind::kAll));
  EXPECT_FALSE(one.freed);
  EXPECT_EQ(one.owner_count, 1u);
  EXPECT_EQ(one.hold_count, 0u);
  const HoldGone gone = Expect<HoldGone>(Release(Hold("k", "a", "s2")));
  EXPECT_TRUE(gone.held_by_other);
  EXPECT_EQ(gone.owner_count, 1u);
  EXPECT_TRUE(Expect<Released>(Release(Hold("k", "a", "s1"))).freed);
}

TEST_P(ReleaseTest, OnlyTheHolderReleases) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  HoldRef wrong_owner = Hold("k", "a");
  wrong_owner.owner = "b-of-sixteen-bytes";
  HoldRef wrong_id = Hold("k", "a");
  wrong_id.hold_id = "hold-x";
  HoldRef wrong_session = Hold("k", "a");
  wrong_session.session = "s2";
  HoldRef no_session = Hold("k", "a");
  no_session.session = "";
  HoldRef wrong_epoch = Hold("k", "a");
  wrong_epoch.epoch = 2;
  for (const HoldRef& wrong : {wrong_owner, wrong_id, wrong_session, no_session, wrong_epoch}) {
    for (ReleaseKind kind : {ReleaseKind::kOne, ReleaseKind::kAll, ReleaseKind::kUndo}) {
      // An undo goes by owner, session and command: it need not know which hold it joined.
      if (kind == ReleaseKind::kUndo && wrong.hold_id == wrong_id.hold_id) continue;
      const HoldGone gone = Expect<HoldGone>(Release(wrong, kind));
      EXPECT_TRUE(gone.held_by_other);
      EXPECT_EQ(gone.owner_count, wrong.owner == wrong_owner.owner ? 0u : 1u);
    }
    RenewOp renew{wrong, absl::Seconds(20)};
    Expect<HoldGone>(renew);
  }
  EXPECT_EQ(CountOf("k"), 1u);
}

TEST_P(ReleaseTest, AReleaseOfNothingIsHoldGone) {
  const HoldGone gone = Expect<HoldGone>(Release(Hold("k", "a")));
  EXPECT_FALSE(gone.held_by_other);
  EXPECT_EQ(gone.owner_count, 0u);
}

TEST_P(ReleaseTest, ARepeatedReleaseGivesBackOnce) {
  for (int i = 0; i < 3; ++i) Expect<Granted>(Acquire(Hold("k", "a")));
  const ReleaseOp op = Release(Hold("k", "a"), ReleaseKind::kOne, "op-1");
  EXPECT_EQ(Expect<Released>(op).hold_count, 2u);
  const Released again = Expect<Released>(op);
  EXPECT_EQ(again.hold_count, 2u);
  EXPECT_EQ(again.owner_count, 2u);
  EXPECT_FALSE(again.freed);
  EXPECT_EQ(Expect<Released>(Release(Hold("k", "a"), ReleaseKind::kOne, "op-2")).hold_count, 1u);
}

TEST_P(ReleaseTest, ARepeatedReleaseOfTheLastCountFreesNothingOfOthers) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  const ReleaseOp op = Release(Hold("k", "a"), ReleaseKind::kOne, "op-1");
  EXPECT_TRUE(Expect<Released>(op).freed);
  Expect<Granted>(Acquire(Hold("k", "b")));
  EXPECT_TRUE(Expect<HoldGone>(op).held_by_other);
  EXPECT_EQ(CountOf("k"), 1u);
}

TEST_P(ReleaseTest, UndoTakesBackAGrantThatWasCarriedOut) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  Expect<Granted>(op);
  EXPECT_TRUE(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-1")).freed);
  EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  Expect<HoldGone>(Release(op.hold, ReleaseKind::kUndo, "op-1"));
}

TEST_P(ReleaseTest, UndoFindsTheHoldThatItsCommandJoined) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  Expect<Granted>(op);
  op.hold.hold_id = "never-used";
  op.op_id = "op-2";
  EXPECT_EQ(Expect<Granted>(op).hold_count, 2u);
  EXPECT_EQ(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-2")).hold_count, 1u);
  EXPECT_EQ(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-2")).hold_count, 1u);
  EXPECT_TRUE(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-1")).freed);
}

TEST_P(ReleaseTest, UndoOfWhatWasNotCarriedOutDoesNothing) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  Expect<HoldGone>(Release(op.hold, ReleaseKind::kUndo, "op-1"));
  Expect<Granted>(op);
  const Released released = Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-2"));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.hold_count, 1u);
  EXPECT_EQ(CountOf("k"), 1u);
}

TEST_P(ReleaseTest, AnUndoneCommandIsForgotten) {
  AcquireOp op = Acquire(Hold("k", "a"));
  for (const char* id : {"op-1", "op-2", "op-3"}) {
    op.op_id = id;
    Expect<Granted>(op);
  }
  EXPECT_EQ(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-2")).hold_count, 2u);
  EXPECT_EQ(Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-2")).hold_count, 2u);
  for (const char* id : {"op-1", "op-3"}) {
    op.op_id = id;
    EXPECT_TRUE(Expect<Granted>(op).replayed) << id;
  }
  op.op_id = "op-2";
  const Granted again = Expect<Granted>(op);
  EXPECT_FALSE(again.replayed);
  EXPECT_EQ(again.hold_count, 3u);
}

TEST_P(ReleaseTest, AMinHoldKeepsTheKeyBackAfterItsRelease) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.min_hold = absl::Milliseconds(300);
  Expect<Granted>(op);
  const Released released = Expect<Released>(Release(op.hold));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.owner_count, 0u);
  EXPECT_GT(released.kept_for, absl::ZeroDuration());
  EXPECT_LE(released.kept_for, absl::Milliseconds(300));

  const Busy busy = Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_TRUE(busy.holders.empty());
  EXPECT_LE(busy.free_in, absl::Milliseconds(300));
  EXPECT_TRUE(Expect<Busy>(Acquire(Hold("k", "a"))).holders.empty()) << "not even to its owner";
  const KeyReport report = Expect<KeyReport>(InspectOp{{"default", "k"}});
  EXPECT_TRUE(report.holders.empty());
  EXPECT_GT(report.kept_for, absl::ZeroDuration());
  EXPECT_FALSE(report.free());
  EXPECT_FALSE(Expect<HoldGone>(Release(op.hold)).held_by_other);

  EXPECT_GT(AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5)).token, 0);
}

TEST_P(ReleaseTest, AMinHoldKeepsTheKeyFromAnAttemptThatFollowsTheReleaseAtOnce) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.min_hold = absl::Seconds(20);
  Expect<Granted>(op);
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  Expect<Busy>(waiting);
  const uint64_t released = client_->Submit(Release(op.hold));
  const uint64_t tried = client_->Submit(waiting);
  EXPECT_FALSE(As<Released>(client_->Wait(released)).freed);
  EXPECT_TRUE(As<Busy>(client_->Wait(tried)).holders.empty());
}

TEST_P(ReleaseTest, AMinHoldThatIsOverKeepsNothing) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.min_hold = absl::Milliseconds(50);
  Expect<Granted>(op);
  const BootTime end = loop_.clock().Now() + absl::Milliseconds(60);
  loop_.RunUntil([&] { return loop_.clock().Now() > end; });
  EXPECT_TRUE(Expect<Released>(Release(op.hold)).freed);
}

TEST_P(ReleaseTest, AMinHoldOutlivesALeaseThatRanOut) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(100);
  op.min_hold = absl::Seconds(20);
  Expect<Granted>(op);
  ASSERT_TRUE(loop_.RunUntil([&] {
    return Expect<KeyReport>(InspectOp{{"default", "k"}}).holders.empty();
  }));
  const Busy busy = Expect<Busy>(Acquire(Hold("k", "b")));
  EXPECT_TRUE(busy.holders.empty());
  EXPECT_GT(busy.free_in, absl::Seconds(10));
}

TEST_P(ReleaseTest, AnUndoneGrantKeepsNothingBack) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  op.min_hold = absl::Seconds(20);
  Expect<Granted>(op);
  const Released released = Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op-1"));
  EXPECT_TRUE(released.freed);
  EXPECT_EQ(released.kept_for, absl::ZeroDuration());
  Expect<Granted>(Acquire(Hold("k", "b")));
}

}  // namespace
}  // namespace holdfast::testing
