// SPDX-License-Identifier: Apache-2.0
//
// Taking keys: grants, refusals, re-entry, repeated commands.
#include <gmock/gmock.h>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

class AcquireTest : public StoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, AcquireTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(AcquireTest, AFreeKeyIsGranted) {
  const Granted granted = Expect<Granted>(Acquire(Hold("k", "a")));
  EXPECT_EQ(granted.hold_id, "hold-a-s1");
  EXPECT_GT(granted.token, 0);
  EXPECT_EQ(granted.owner_count, 1u);
  EXPECT_EQ(granted.hold_count, 1u);
  EXPECT_EQ(granted.lease_remaining, absl::Seconds(20));
  EXPECT_EQ(granted.max_hold_remaining, absl::InfiniteDuration());
  EXPECT_FALSE(granted.replayed);
}

TEST_P(AcquireTest, AHeldKeyIsBusyAndSaysWhoHoldsIt) {
  AcquireOp first = Acquire(Hold("k", "a"));
  first.note = "nightly job";
  Expect<Granted>(first);
  const Busy busy = Expect<Busy>(Acquire(Hold("k", "b", "s2")));
  ASSERT_EQ(busy.holders.size(), 1u);
  const HolderState& holder = busy.holders[0];
  EXPECT_EQ(holder.owner, first.hold.owner);
  EXPECT_EQ(holder.hold_id, first.hold.hold_id);
  EXPECT_EQ(holder.session, "s1");
  EXPECT_EQ(holder.count, 1u);
  EXPECT_EQ(holder.note, "nightly job");
  EXPECT_FALSE(holder.foreign);
  EXPECT_LT(holder.held_for, absl::Seconds(10));
  EXPECT_GT(holder.expires_in, absl::Seconds(10));
  EXPECT_LE(holder.expires_in, absl::Seconds(20));
  EXPECT_GT(busy.free_in, absl::Seconds(10));
  EXPECT_LE(busy.free_in, absl::Seconds(20));
  EXPECT_EQ(Expect<KeyReport>(InspectOp{{"default", "k"}}).holders[0].count, 1u);
}

TEST_P(AcquireTest, KeysAndNamespacesAreApart) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Granted>(Acquire(Hold("k2", "b")));
  AcquireOp other = Acquire(Hold("k", "c"));
  other.hold.name.ns = "other";
  Expect<Granted>(other);
}

TEST_P(AcquireTest, TheOwnerTakesItsKeyAgain) {
  const Granted first = Expect<Granted>(Acquire(Hold("k", "a")));
  AcquireOp again = Acquire(Hold("k", "a"));
  again.hold.hold_id = "another-id";
  const Granted second = Expect<Granted>(again);
  EXPECT_EQ(second.hold_id, "hold-a-s1");
  EXPECT_EQ(second.token, first.token);
  EXPECT_EQ(second.owner_count, 2u);
  EXPECT_EQ(second.hold_count, 2u);
  EXPECT_FALSE(second.replayed);
}

TEST_P(AcquireTest, ReentryNeverShortensTheLease) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  AcquireOp shorter = Acquire(Hold("k", "a"));
  shorter.lease = absl::Milliseconds(200);
  EXPECT_GT(Expect<Granted>(shorter).lease_remaining, absl::Seconds(10));
  AcquireOp longer = Acquire(Hold("k", "a"));
  longer.lease = absl::Seconds(40);
  EXPECT_EQ(Expect<Granted>(longer).lease_remaining, absl::Seconds(40));
}

TEST_P(AcquireTest, RefusedReentryChangesNothing) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.refuse_reentry = true;
  Expect<Granted>(op);
  Expect<ReentryRefused>(op);
  op.hold = Hold("k", "a", "s2");
  Expect<ReentryRefused>(op);
  const KeyReport report = Expect<KeyReport>(InspectOp{{"default", "k"}});
  ASSERT_EQ(report.holders.size(), 1u);
  EXPECT_EQ(report.holders[0].count, 1u);
}

TEST_P(AcquireTest, OnlyReentryTakesNoFreeKey) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.only_reentry = true;
  EXPECT_TRUE(Expect<Busy>(op).holders.empty());
  EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  Expect<Granted>(Acquire(Hold("k", "a")));
  EXPECT_EQ(Expect<Granted>(op).hold_count, 2u);
  op.hold = Hold("k", "b", "s2");
  EXPECT_EQ(Expect<Busy>(op).holders.size(), 1u);
}

TEST_P(AcquireTest, ARepeatedCommandIsNotCountedTwice) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  const Granted first = Expect<Granted>(op);
  const Granted again = Expect<Granted>(op);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.token, first.token);
  EXPECT_EQ(again.hold_count, 1u);
  EXPECT_EQ(again.owner_count, 1u);
  op.refuse_reentry = true;  // a retry of the grant is no re-entry
  EXPECT_TRUE(Expect<Granted>(op).replayed);

  op.op_id = "op-2";
  op.refuse_reentry = false;
  EXPECT_FALSE(Expect<Granted>(op).replayed);
  op.op_id = "op-1";
  EXPECT_EQ(Expect<Granted>(op).hold_count, 2u);
}

TEST_P(AcquireTest, AHoldRemembersItsLastCommandsOnly) {
  AcquireOp op = Acquire(Hold("k", "a"));
  for (int i = 0; i < 5; ++i) {
    op.op_id = "op-" + std::to_string(i);
    EXPECT_FALSE(Expect<Granted>(op).replayed) << i;
  }
  for (int i = 1; i < 5; ++i) {
    op.op_id = "op-" + std::to_string(i);
    EXPECT_TRUE(Expect<Granted>(op).replayed) << i;
  }
  op.op_id = "op-0";
  EXPECT_FALSE(Expect<Granted>(op).replayed);
}

TEST_P(AcquireTest, OneCommandIdIsNoPartOfAnother) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-12";
  Expect<Granted>(op);
  for (const char* part : {"op-1", "12", "op-123", "-", "%w+", "op-1."}) {
    op.op_id = part;
    EXPECT_FALSE(Expect<Granted>(op).replayed) << part;
  }
}

TEST_P(AcquireTest, ReplayOnlyTakesNothing) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op-1";
  op.replay_only = true;
  EXPECT_FALSE(Expect<HoldGone>(op).held_by_other);
  EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  op.replay_only = false;
  Expect<Granted>(op);
  op.replay_only = true;
  EXPECT_TRUE(Expect<Granted>(op).replayed);
  op.op_id = "op-2";
  const HoldGone gone = Expect<HoldGone>(op);
  EXPECT_TRUE(gone.held_by_other);
  EXPECT_EQ(gone.owner_count, 1u);
  EXPECT_EQ(Expect<KeyReport>(InspectOp{{"default", "k"}}).holders[0].count, 1u);
}

TEST_P(AcquireTest, TwoSessionsOfOneOwnerHoldTogether) {
  const Granted one = Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  const Granted two = Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  EXPECT_EQ(two.token, one.token);
  EXPECT_EQ(two.hold_id, "hold-a-s2");
  EXPECT_EQ(two.owner_count, 2u);
  EXPECT_EQ(two.hold_count, 1u);
  EXPECT_EQ(Expect<Busy>(Acquire(Hold("k", "b"))).holders.size(), 2u);
}

TEST_P(AcquireTest, AnotherEpochOfASessionDoesNotTouchItsHold) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  AcquireOp later = Acquire(Hold("k", "a"));
  later.hold.epoch = 2;
  later.hold.hold_id = "hold-of-epoch-2";
  const Granted granted = Expect<Granted>(later);
  EXPECT_EQ(granted.hold_id, "hold-of-epoch-2");
  EXPECT_EQ(granted.hold_count, 1u);
  EXPECT_EQ(granted.owner_count, 2u);
}

TEST_P(AcquireTest, AHoldIdInUseIsRefused) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  AcquireOp other = Acquire(Hold("k", "a", "s2"));
  other.hold.hold_id = "hold-a-s1";
  EXPECT_TRUE(std::holds_alternative<StoreFailure>(client_->Ask(other)));
  const KeyReport report = Expect<KeyReport>(InspectOp{{"default", "k"}});
  ASSERT_EQ(report.holders.size(), 1u);
  EXPECT_EQ(report.holders[0].session, "s1");
}

TEST_P(AcquireTest, BareLeasesHaveNoSession) {
  EXPECT_EQ(Expect<Granted>(Acquire(Hold("k", "a", ""))).hold_count, 1u);
  EXPECT_EQ(Expect<Granted>(Acquire(Hold("k", "a", ""))).hold_count, 2u);
  EXPECT_EQ(Expect<Released>(Release(Hold("k", "a", ""))).hold_count, 1u);
}

TEST_P(AcquireTest, TokensGrowWithEachOwnership) {
  int64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    const HoldRef hold = Hold("k", i % 2 == 0 ? "a" : "b");
    const Granted granted = Expect<Granted>(Acquire(hold));
    EXPECT_GT(granted.token, last);
    EXPECT_LT(granted.token, int64_t{1} << 53);
    last = granted.token;
    EXPECT_TRUE(Expect<Released>(Release(hold)).freed);
  }
}

TEST_P(AcquireTest, RequestsForOneKeyKeepTheirOrder) {
  std::vector<uint64_t> ids;
  const HoldRef a = Hold("k", "a");
  const HoldRef b = Hold("k", "b");
  for (int i = 0; i < 100; ++i) {
    ids.push_back(client_->Submit(Acquire(a)));
    ids.push_back(client_->Submit(Acquire(b)));
    ids.push_back(client_->Submit(Release(a)));
  }
  for (size_t i = 0; i < ids.size(); i += 3) {
    As<Granted>(client_->Wait(ids[i]));
    As<Busy>(client_->Wait(ids[i + 1]));
    EXPECT_TRUE(As<Released>(client_->Wait(ids[i + 2])).freed);
  }
}

}  // namespace
}  // namespace holdfast::testing
