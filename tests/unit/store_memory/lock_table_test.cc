// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/lock_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/unit/store_memory/fakes.h"

namespace holdfast::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LockTableTest : public ::testing::Test {
 protected:
  // Carries `op` out and gives the answer, which must be a T.
  template <typename T, typename Op>
  T Do(Op op) {
    StoreRequest request;
    request.id = ++id_;
    request.op = std::move(op);
    StoreReply reply = table_.Apply(request, clock_.now);
    EXPECT_EQ(reply.id, request.id);
    T* answer = std::get_if<T>(&reply.result);
    if (answer == nullptr) {
      ADD_FAILURE() << "answer " << reply.result.index() << " instead of "
                    << StoreReply{.id = 0, .result = T()}.result.index();
      return T();
    }
    return *answer;
  }

  KeyReport Look(const std::string& key = "key") {
    return Do<KeyReport>(InspectOp{{"default", key}});
  }
  std::vector<KeyName> Freed() {
    std::vector<KeyName> names;
    for (const LockTable::Freed& freed : table_.TakeFreed()) names.push_back(freed.name);
    return names;
  }
  void Pass(absl::Duration duration) { clock_.now = clock_.now + duration; }

  FakeClock clock_;
  FakeWallClock wall_clock_;
  TokenCounter tokens_{&wall_clock_, 0};
  LockTable table_{&tokens_};
  uint64_t id_ = 0;
};

TEST_F(LockTableTest, TheSecondOwnerIsToldWhoHoldsAndForHowLong) {
  AcquireOp first = Take(Ref("alice"));
  first.note = "backup";
  const Granted granted = Do<Granted>(first);
  EXPECT_EQ(granted.hold_id, "hold");
  EXPECT_EQ(granted.owner_count, 1u);
  EXPECT_EQ(granted.lease_remaining, absl::Seconds(30));
  EXPECT_EQ(granted.max_hold_remaining, absl::InfiniteDuration());

  Pass(absl::Seconds(10));
  const Busy busy = Do<Busy>(Take(Ref("bob", "other")));
  ASSERT_EQ(busy.holders.size(), 1u);
  EXPECT_EQ(busy.holders[0].owner, "alice");
  EXPECT_EQ(busy.holders[0].note, "backup");
  EXPECT_EQ(busy.holders[0].held_for, absl::Seconds(10));
  EXPECT_EQ(busy.holders[0].expires_in, absl::Seconds(20));
  EXPECT_EQ(busy.free_in, absl::Seconds(20));
}

TEST_F(LockTableTest, ReentryKeepsTokenAndHoldAndNeverShortensTheLease) {
  const int64_t token = Do<Granted>(Take(Ref("alice"))).token;
  const Granted again = Do<Granted>(Take(Ref("alice", "fresh id"), absl::Seconds(5)));
  EXPECT_EQ(again.token, token);
  EXPECT_EQ(again.hold_id, "hold");
  EXPECT_EQ(again.owner_count, 2u);
  EXPECT_EQ(again.lease_remaining, absl::Seconds(30));

  EXPECT_FALSE(Do<Released>(Give(Ref("alice"))).freed);
  EXPECT_TRUE(Do<Released>(Give(Ref("alice"))).freed);
  EXPECT_TRUE(Look().free());
}

TEST_F(LockTableTest, TheOwnerJoinsThroughAnotherSessionWithAHoldOfItsOwn) {
  Do<Granted>(Take(Ref("alice", "h1", "key", "s1")));
  const Granted joined = Do<Granted>(Take(Ref("alice", "h2", "key", "s2"), absl::Seconds(60)));
  EXPECT_EQ(joined.hold_id, "h2");
  EXPECT_EQ(joined.owner_count, 2u);
  EXPECT_EQ(joined.hold_count, 1u);

  Pass(absl::Seconds(30));  // ends h1 only
  const HoldGone gone = Do<HoldGone>(RenewOp{Ref("alice", "h1", "key", "s1"), absl::Seconds(30)});
  EXPECT_TRUE(gone.held_by_other);
  EXPECT_EQ(gone.owner_count, 1u);
  EXPECT_EQ(Do<Released>(Give(Ref("alice", "h2", "key", "s2"))).owner_count, 0u);
}

TEST_F(LockTableTest, ReentryCanBeRefused) {
  Do<Granted>(Take(Ref("alice")));
  AcquireOp again = Take(Ref("alice"));
  again.refuse_reentry = true;
  Do<ReentryRefused>(again);
  EXPECT_EQ(Look().holders[0].count, 1u);
}

TEST_F(LockTableTest, OnlyReentryTakesNoFreeKey) {
  AcquireOp op = Take(Ref("alice"));
  op.only_reentry = true;
  EXPECT_THAT(Do<Busy>(op).holders, IsEmpty());
  EXPECT_TRUE(Look().free());
  Do<Granted>(Take(Ref("alice")));
  EXPECT_EQ(Do<Granted>(op).owner_count, 2u);
}

TEST_F(LockTableTest, ARepeatedAcquireCountsOnce) {
  AcquireOp op = Take(Ref("alice"));
  op.op_id = "op1";
  Do<Granted>(op);
  Pass(absl::Seconds(1));
  op.refuse_reentry = true;  // a repeat is no re-entry
  const Granted repeat = Do<Granted>(op);
  EXPECT_TRUE(repeat.replayed);
  EXPECT_EQ(repeat.owner_count, 1u);
  EXPECT_EQ(repeat.lease_remaining, absl::Seconds(29));
}

TEST_F(LockTableTest, ReplayOnlyNeverTakes) {
  AcquireOp op = Take(Ref("alice"));
  op.op_id = "op1";
  op.replay_only = true;
  EXPECT_FALSE(Do<HoldGone>(op).held_by_other);
  EXPECT_TRUE(Look().free());
}

TEST_F(LockTableTest, AHoldRemembersItsLastOpsOnly) {
  AcquireOp op = Take(Ref("alice"));
  for (size_t i = 0; i <= limits::kOpsPerHold; ++i) {
    op.op_id = absl::StrCat("op", i);
    EXPECT_FALSE(Do<Granted>(op).replayed);
  }
  EXPECT_TRUE(Do<Granted>(op).replayed);
  op.op_id = "op0";
  EXPECT_FALSE(Do<Granted>(op).replayed);
}

TEST_F(LockTableTest, ARepeatedReleaseGivesBackOnce) {
  Do<Granted>(Take(Ref("alice")));
  Do<Granted>(Take(Ref("alice")));
  EXPECT_EQ(Do<Released>(Give(Ref("alice"), ReleaseKind::kOne, "r1")).owner_count, 1u);
  EXPECT_EQ(Do<Released>(Give(Ref("alice"), ReleaseKind::kOne, "r1")).owner_count, 1u);
  EXPECT_TRUE(Do<Released>(Give(Ref("alice"), ReleaseKind::kAll)).freed);
  EXPECT_FALSE(Do<HoldGone>(Give(Ref("alice"))).held_by_other);
}

TEST_F(LockTableTest, UndoTakesBackWhatItNamesAndNothingElse) {
  AcquireOp op = Take(Ref("alice"));
  op.op_id = "op1";
  op.min_hold = absl::Minutes(10);
  Do<Granted>(op);
  EXPECT_EQ(Do<Released>(Give(Ref("alice"), ReleaseKind::kUndo, "other")).owner_count, 1u);
  const Released undone = Do<Released>(Give(Ref("alice"), ReleaseKind::kUndo, "op1"));
  EXPECT_TRUE(undone.freed) << "a min_hold must not keep an undone acquire's key back";
  EXPECT_FALSE(Do<Granted>(op).replayed) << "an undone command can be run again";
}

TEST_F(LockTableTest, NobodyElseRenewsOrReleases) {
  Do<Granted>(Take(Ref("alice", "hold", "key", "s1")));
  HoldRef wrong_epoch = Ref("alice", "hold", "key", "s1");
  wrong_epoch.epoch = 2;
  for (const HoldRef& wrong :
       {Ref("bob", "hold", "key", "s1"), Ref("alice", "other", "key", "s1"),
        Ref("alice", "hold", "key", "s2"), Ref("alice", "hold", "other", "s1"), wrong_epoch}) {
    Do<HoldGone>(RenewOp{wrong, absl::Minutes(1)});
    Do<HoldGone>(Give(wrong, ReleaseKind::kAll));
  }
  EXPECT_EQ(Look().holders[0].expires_in, absl::Seconds(30));
}

TEST_F(LockTableTest, RenewalMovesTheDeadlineOnButNotPastMaxHold) {
  AcquireOp op = Take(Ref("alice"));
  op.max_hold = absl::Seconds(45);
  EXPECT_EQ(Do<Granted>(op).max_hold_remaining, absl::Seconds(45));
  EXPECT_EQ(Do<Renewed>(RenewOp{Ref("alice"), absl::Seconds(10)}).lease_remaining,
            absl::Seconds(30));
  Pass(absl::Seconds(20));
  const Renewed renewed = Do<Renewed>(RenewOp{Ref("alice"), absl::Seconds(30)});
  EXPECT_EQ(renewed.lease_remaining, absl::Seconds(25));
  EXPECT_EQ(renewed.max_hold_remaining, absl::Seconds(25));
  Pass(absl::Seconds(25));
  Do<HoldGone>(RenewOp{Ref("alice"), absl::Seconds(30)});
}

TEST_F(LockTableTest, TokensGrowWithEachOwnershipAlsoWhenTheWallClockGoesBack) {
  const int64_t first = Do<Granted>(Take(Ref("alice"))).token;
  EXPECT_EQ(first, 1000 * limits::kTokensPerMilli);
  Pass(absl::Seconds(31));
  wall_clock_.millis -= 500;
  EXPECT_EQ(Do<Granted>(Take(Ref("bob"))).token, first + 1);
}

TEST_F(LockTableTest, AMinHoldKeepsAReleasedKeyBackFromEverybody) {
  AcquireOp op = Take(Ref("alice"));
  op.min_hold = absl::Minutes(1);
  Do<Granted>(op);
  const Released released = Do<Released>(Give(Ref("alice")));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.kept_for, absl::Minutes(1));
  EXPECT_THAT(Freed(), IsEmpty());

  const Busy busy = Do<Busy>(Take(Ref("alice")));
  EXPECT_THAT(busy.holders, IsEmpty());
  EXPECT_EQ(busy.free_in, absl::Minutes(1));
  EXPECT_EQ(Look().kept_for, absl::Minutes(1));

  Pass(absl::Minutes(1));
  EXPECT_EQ(table_.NextExpiry(), clock_.now);
  EXPECT_EQ(table_.DropExpired(clock_.now, 10), 1u);
  EXPECT_THAT(Freed(), ElementsAre(KeyName{"default", "key"}));
  Do<Granted>(Take(Ref("bob")));
}

TEST_F(LockTableTest, AMinHoldOutlivesAHolderThatDied) {
  AcquireOp op = Take(Ref("alice"), absl::Seconds(10));
  op.min_hold = absl::Minutes(1);
  Do<Granted>(op);
  Pass(absl::Seconds(20));
  EXPECT_EQ(Do<Busy>(Take(Ref("bob"))).free_in, absl::Seconds(40));
}

TEST_F(LockTableTest, ReleaseAndExpirySayWhichKeysBecameFree) {
  Do<Granted>(Take(Ref("alice", "h", "a")));
  Do<Granted>(Take(Ref("alice", "h", "b")));
  Do<Granted>(Take(Ref("alice", "h", "c")));
  Do<Released>(Give(Ref("alice", "h", "b")));
  Pass(absl::Seconds(30));
  Look("c");                                // noticed by a look
  Do<Granted>(Take(Ref("bob", "h", "a")));  // noticed by the next holder: nobody to wake
  EXPECT_THAT(Freed(), ElementsAre(KeyName{"default", "b"}, KeyName{"default", "c"}));
}

TEST_F(LockTableTest, InGraceOnlyTheHolderTakesAgain) {
  Do<Granted>(Take(Ref("alice")));
  table_.SetGrace(clock_.now + absl::Seconds(60));
  EXPECT_EQ(Do<InGrace>(Take(Ref("bob", "h", "free key"))).remaining, absl::Seconds(60));
  EXPECT_EQ(Do<Granted>(Take(Ref("alice"))).owner_count, 2u);
  Do<Renewed>(RenewOp{Ref("alice"), absl::Seconds(30)});
  Do<Released>(Give(Ref("alice"), ReleaseKind::kAll));
  Do<InGrace>(Take(Ref("alice")));
  Pass(absl::Seconds(60));
  Do<Granted>(Take(Ref("alice")));
}

TEST_F(LockTableTest, KeysUsedOnceLeaveNothingBehind) {
  for (int i = 0; i < 2500; ++i) Do<Granted>(Take(Ref("alice", "h", absl::StrCat("key", i))));
  Pass(absl::Seconds(30));
  EXPECT_EQ(table_.DropExpired(clock_.now, 1000), 1000u);
  EXPECT_EQ(table_.DropExpired(clock_.now, 2000), 1500u);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_EQ(table_.NextExpiry(), BootTime::Infinite());
}

TEST_F(LockTableTest, AListingComesInKeyOrderAndBoundedSteps) {
  const int keys = static_cast<int>(2 * limits::kKeysPerListStep + 1);
  for (int i = 0; i < keys; ++i) {
    Do<Granted>(Take(Ref("alice", "h", absl::StrCat("job/", 1000 + i))));
  }
  Do<Granted>(Take(Ref("alice", "h", "joc")));
  HoldRef elsewhere = Ref("alice", "h", "job/0000");
  elsewhere.name.ns = "other";
  Do<Granted>(Take(elsewhere));

  ListOp list{.ns = "default", .prefix = "job/", .cursor = ""};
  std::string last;
  int seen = 0;
  int pages = 0;
  do {
    const ListPage page = Do<ListPage>(list);
    for (const KeyReport& report : page.keys) {
      EXPECT_LT(last, report.name.key);
      last = report.name.key;
      ++seen;
    }
    list.cursor = page.next_cursor;
    ++pages;
  } while (!list.cursor.empty());
  EXPECT_EQ(seen, keys);
  EXPECT_EQ(pages, 3);
}

}  // namespace
}  // namespace holdfast::memory
