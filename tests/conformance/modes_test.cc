// SPDX-License-Identifier: Apache-2.0
//
// SHARED and PERMIT: who may hold beside whom, and what each hold's end means for the others.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

class ModesTest : public StoreTest {
 protected:
  AcquireOp Read(const std::string& owner, const std::string& session = "s1") {
    AcquireOp op = Acquire(Hold("k", owner, session));
    op.mode = Mode::kShared;
    return op;
  }
  AcquireOp Write(const std::string& owner, const std::string& session = "s1") {
    return Acquire(Hold("k", owner, session));
  }
  AcquireOp Permit(const std::string& owner, uint32_t limit, const std::string& session = "s1") {
    AcquireOp op = Acquire(Hold("k", owner, session));
    op.mode = Mode::kPermit;
    op.limit = limit;
    return op;
  }
  Released Give(const AcquireOp& op, ReleaseKind kind = ReleaseKind::kOne) {
    return Expect<Released>(Release(op.hold, kind, kind == ReleaseKind::kUndo ? op.op_id : ""));
  }
  KeyReport Look() { return Expect<KeyReport>(InspectOp{{"default", "k"}}); }
  bool WaitUntilHolders(size_t n) {
    return loop_.RunUntil([&] { return Look().holders.size() == n; });
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, ModesTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ModesTest, ReadersHoldTogetherUnderOneToken) {
  const Granted one = Expect<Granted>(Read("a"));
  const Granted two = Expect<Granted>(Read("b"));
  EXPECT_EQ(one.mode, Mode::kShared);
  EXPECT_TRUE(one.more_fit);
  EXPECT_GT(one.token, 0);
  EXPECT_EQ(two.token, one.token);
  EXPECT_EQ(two.hold_id, "hold-b-s1");
  EXPECT_EQ(two.owner_count, 1u);
  EXPECT_EQ(two.lease_remaining, absl::Seconds(20));

  const KeyReport report = Look();
  EXPECT_EQ(report.mode, Mode::kShared);
  EXPECT_EQ(report.token, one.token);
  ASSERT_EQ(report.holders.size(), 2u);
  std::set<std::string> owners;
  for (const HolderState& holder : report.holders) {
    EXPECT_EQ(holder.mode, Mode::kShared);
    owners.insert(holder.owner);
  }
  EXPECT_EQ(owners.size(), 2u);
}

TEST_P(ModesTest, AWriterWaitsForTheLastReader) {
  Expect<Granted>(Read("a"));
  Expect<Granted>(Read("b"));
  const Busy busy = Expect<Busy>(Write("w"));
  EXPECT_EQ(busy.holders.size(), 2u);
  EXPECT_GT(busy.free_in, absl::Seconds(10));
  const Released first = Give(Read("a"));
  EXPECT_FALSE(first.freed);
  EXPECT_EQ(first.owner_count, 0u);
  Expect<Busy>(Write("w"));
  EXPECT_TRUE(Give(Read("b")).freed);
  const Granted granted = Expect<Granted>(Write("w"));
  EXPECT_EQ(granted.mode, Mode::kExclusive);
  EXPECT_FALSE(granted.more_fit);
}

TEST_P(ModesTest, AReaderWaitsForTheWriter) {
  const Granted written = Expect<Granted>(Write("w"));
  EXPECT_EQ(Expect<Busy>(Read("a")).holders.size(), 1u);
  EXPECT_EQ(Expect<Busy>(Permit("p", 3)).holders.size(), 1u);
  EXPECT_TRUE(Give(Write("w")).freed);
  EXPECT_GT(Expect<Granted>(Read("a")).token, written.token);
}

TEST_P(ModesTest, ANewReadPhaseHasANewToken) {
  const Granted first = Expect<Granted>(Read("a"));
  Expect<Granted>(Read("b"));
  Give(Read("a"));
  EXPECT_EQ(Expect<Granted>(Read("c")).token, first.token) << "the phase goes on";
  Give(Read("b"));
  EXPECT_TRUE(Give(Read("c")).freed);
  EXPECT_TRUE(Look().free());
  EXPECT_GT(Expect<Granted>(Read("a")).token, first.token);
}

TEST_P(ModesTest, AReaderTakesItsKeyAgain) {
  Expect<Granted>(Read("b"));
  const Granted first = Expect<Granted>(Read("a"));
  AcquireOp again = Read("a");
  again.hold.hold_id = "another-id";
  const Granted second = Expect<Granted>(again);
  EXPECT_EQ(second.hold_id, first.hold_id);
  EXPECT_EQ(second.token, first.token);
  EXPECT_EQ(second.hold_count, 2u);
  EXPECT_EQ(second.owner_count, 2u);
  const Granted elsewhere = Expect<Granted>(Read("a", "s2"));
  EXPECT_EQ(elsewhere.hold_id, "hold-a-s2");
  EXPECT_EQ(elsewhere.owner_count, 3u);
  EXPECT_EQ(elsewhere.hold_count, 1u);

  EXPECT_EQ(Give(Read("a")).owner_count, 2u);
  EXPECT_EQ(Give(Read("a")).owner_count, 1u);
  EXPECT_EQ(Give(Read("a", "s2")).owner_count, 0u);
  EXPECT_EQ(Look().holders.size(), 1u);
}

TEST_P(ModesTest, RefusedReentryAndOnlyReentryMeanTheOwner) {
  Expect<Granted>(Read("a"));
  AcquireOp refuse = Read("a");
  refuse.refuse_reentry = true;
  Expect<ReentryRefused>(refuse);
  refuse.hold = Hold("k", "b");
  Expect<Granted>(refuse);
  AcquireOp only = Read("c");
  only.only_reentry = true;
  EXPECT_EQ(Expect<Busy>(only).holders.size(), 2u);
  only.hold = Hold("k", "b");
  EXPECT_EQ(Expect<Granted>(only).hold_count, 2u);
}

TEST_P(ModesTest, AReadInsideAWriteKeepsTheWrite) {
  const Granted written = Expect<Granted>(Write("w"));
  const Granted read = Expect<Granted>(Read("w"));
  EXPECT_EQ(read.mode, Mode::kExclusive);
  EXPECT_EQ(read.token, written.token);
  EXPECT_EQ(read.hold_count, 2u);
  EXPECT_FALSE(read.more_fit);
  const Granted elsewhere = Expect<Granted>(Read("w", "s2"));
  EXPECT_EQ(elsewhere.mode, Mode::kExclusive);
  EXPECT_EQ(elsewhere.owner_count, 3u);
  Expect<Busy>(Read("a"));
  EXPECT_EQ(Give(Read("w", "s2")).owner_count, 2u);
  EXPECT_EQ(Give(Read("w")).owner_count, 1u);
  Expect<Busy>(Read("a"));
  Expect<Busy>(Write("x"));
  EXPECT_EQ(Look().mode, Mode::kExclusive);
  EXPECT_TRUE(Give(Write("w")).freed);
  Expect<Granted>(Read("a"));
}

TEST_P(ModesTest, AReaderIsNotMadeAWriter) {
  for (const bool alone : {true, false}) {
    if (!alone) Expect<Granted>(Read("b"));
    Expect<Granted>(Read("a"));
    EXPECT_EQ(Expect<ModeRefused>(Write("a")).held, Mode::kShared);
    EXPECT_EQ(Expect<ModeRefused>(Write("a", "s2")).held, Mode::kShared);
    AcquireOp probe = Write("a");
    probe.only_reentry = true;
    EXPECT_EQ(Expect<ModeRefused>(probe).held, Mode::kShared);
    EXPECT_EQ(Expect<ModeRefused>(Permit("a", 2)).held, Mode::kShared);
    EXPECT_EQ(Give(Read("a")).owner_count, 0u) << "the refusals changed nothing";
  }
}

TEST_P(ModesTest, AWriterIsNotMadeAPermitNorAPermitAReader) {
  Expect<Granted>(Write("a"));
  EXPECT_EQ(Expect<ModeRefused>(Permit("a", 2)).held, Mode::kExclusive);
  EXPECT_TRUE(Give(Write("a")).freed);
  Expect<Granted>(Permit("a", 2));
  for (const AcquireOp& op : {Read("a"), Write("a")}) {
    const ModeRefused refused = Expect<ModeRefused>(op);
    EXPECT_EQ(refused.held, Mode::kPermit);
    EXPECT_EQ(refused.limit, 2u);
  }
  EXPECT_TRUE(Give(Permit("a", 2)).freed);
  EXPECT_TRUE(Look().free());
}

TEST_P(ModesTest, AsManyPermitsAsTheLimitSays) {
  std::set<int64_t> numbers;
  for (const char* owner : {"a", "b", "c"}) {
    const Granted granted = Expect<Granted>(Permit(owner, 3));
    EXPECT_EQ(granted.mode, Mode::kPermit);
    EXPECT_GT(granted.token, 0);
    EXPECT_EQ(granted.more_fit, numbers.size() < 2);
    numbers.insert(granted.token);
  }
  EXPECT_EQ(numbers.size(), 3u) << "each permit has its own number";
  EXPECT_EQ(Expect<Busy>(Permit("d", 3)).holders.size(), 3u);
  Expect<Busy>(Read("r"));
  Expect<Busy>(Write("w"));

  const Released released = Give(Permit("b", 3));
  EXPECT_TRUE(released.freed) << "a permit can be granted";
  EXPECT_EQ(released.owner_count, 0u);
  EXPECT_GT(Expect<Granted>(Permit("d", 3)).token, *numbers.rbegin());
  Expect<Busy>(Permit("b", 3));

  const KeyReport report = Look();
  EXPECT_EQ(report.mode, Mode::kPermit);
  EXPECT_EQ(report.limit, 3u);
  EXPECT_EQ(report.token, 0);
  std::set<int64_t> seen;
  for (const HolderState& holder : report.holders) seen.insert(holder.token);
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.count(0), 0u);
}

TEST_P(ModesTest, APermitTakenAgainIsNoSecondPermit) {
  const Granted first = Expect<Granted>(Permit("a", 2));
  EXPECT_EQ(Expect<Granted>(Permit("a", 2)).token, first.token);
  const Granted elsewhere = Expect<Granted>(Permit("a", 2, "s2"));
  EXPECT_EQ(elsewhere.token, first.token);
  EXPECT_EQ(elsewhere.owner_count, 3u);
  EXPECT_TRUE(elsewhere.more_fit);
  Expect<Granted>(Permit("b", 2));
  Expect<Busy>(Permit("c", 2));
  EXPECT_FALSE(Give(Permit("a", 2, "s2")).freed) << "its owner holds it still";
  EXPECT_FALSE(Give(Permit("a", 2)).freed);
  Expect<Busy>(Permit("c", 2));
  EXPECT_TRUE(Give(Permit("a", 2)).freed);
  Expect<Granted>(Permit("c", 2));
}

TEST_P(ModesTest, AnotherLimitIsRefusedAndNamesTheKeys) {
  Expect<Granted>(Permit("a", 2));
  for (const std::string owner : {"a", "b"}) {
    const ModeRefused refused = Expect<ModeRefused>(Permit(owner, 3));
    EXPECT_EQ(refused.held, Mode::kPermit);
    EXPECT_EQ(refused.limit, 2u);
  }
  EXPECT_TRUE(Give(Permit("a", 2)).freed);
  Expect<Granted>(Permit("b", 3));
}

TEST_P(ModesTest, ARepeatedCommandIsNotCountedTwiceInAnyMode) {
  for (const bool permit : {false, true}) {
    const auto make = [&](const std::string& owner) {
      return permit ? Permit(owner, 5) : Read(owner);
    };
    Expect<Granted>(make("b"));
    AcquireOp op = make("a");
    op.op_id = "op-1";
    const Granted first = Expect<Granted>(op);
    const Granted again = Expect<Granted>(op);
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.token, first.token);
    EXPECT_EQ(again.mode, op.mode);
    EXPECT_EQ(again.hold_count, 1u);
    op.replay_only = true;
    EXPECT_EQ(Expect<Granted>(op).token, first.token);
    EXPECT_EQ(Give(op, ReleaseKind::kUndo).owner_count, 0u);
    Expect<HoldGone>(op);
    EXPECT_TRUE(Give(make("b")).freed);
    EXPECT_TRUE(Look().free());
  }
}

TEST_P(ModesTest, OnlyTheHolderReleasesAmongMany) {
  Expect<Granted>(Read("a"));
  Expect<Granted>(Read("b"));
  HoldRef wrong = Hold("k", "b");
  wrong.hold_id = "hold-a-s1";
  EXPECT_EQ(Expect<HoldGone>(Release(wrong)).owner_count, 1u);
  const HoldGone stranger = Expect<HoldGone>(Release(Hold("k", "c"), ReleaseKind::kAll));
  EXPECT_TRUE(stranger.held_by_other);
  EXPECT_EQ(stranger.owner_count, 0u);
  Expect<HoldGone>(RenewOp{wrong, absl::Seconds(20)});
  EXPECT_EQ(Look().holders.size(), 2u);
  AcquireOp taken = Read("c");
  taken.hold.hold_id = "hold-a-s1";
  EXPECT_TRUE(std::holds_alternative<StoreFailure>(client_->Ask(taken))) << "the id is in use";
}

TEST_P(ModesTest, ADeadReaderDoesNotLiveOnThroughAnothersRenewals) {
  AcquireOp dying = Read("a");
  dying.lease = absl::Milliseconds(150);
  Expect<Granted>(dying);
  Expect<Granted>(Read("b"));
  Expect<Renewed>(RenewOp{Hold("k", "b"), absl::Seconds(30)});
  ASSERT_TRUE(WaitUntilHolders(1));
  EXPECT_TRUE(Expect<HoldGone>(RenewOp{dying.hold, absl::Seconds(20)}).held_by_other);
  EXPECT_EQ(Expect<HoldGone>(Release(dying.hold)).owner_count, 0u);
  EXPECT_TRUE(Give(Read("b")).freed) << "nothing of the dead one is left";
}

TEST_P(ModesTest, AShortLeaseDoesNotCutALongOne) {
  Expect<Granted>(Read("a"));
  AcquireOp brief = Read("b");
  brief.lease = absl::Milliseconds(100);
  Expect<Granted>(brief);
  Expect<Renewed>(RenewOp{brief.hold, absl::Milliseconds(120)});
  ASSERT_TRUE(WaitUntilHolders(1));
  EXPECT_GT(Look().holders[0].expires_in, absl::Seconds(10));
  EXPECT_GT(Expect<Busy>(Write("w")).free_in, absl::Seconds(10)) << "the latest deadline counts";
}

TEST_P(ModesTest, AnExpiredPermitIsFreeAndTheOthersStay) {
  AcquireOp brief = Permit("a", 2);
  brief.lease = absl::Milliseconds(150);
  const BootTime before = loop_.clock().Now();
  Expect<Granted>(brief);
  Expect<Granted>(Permit("b", 2));
  EXPECT_LE(Expect<Busy>(Permit("c", 2)).free_in, brief.lease) << "the earliest deadline counts";
  EXPECT_GT(Expect<Busy>(Write("w")).free_in, absl::Seconds(10));
  AcquireWhenFree(Permit("c", 2), absl::Seconds(5));
  EXPECT_GE(loop_.clock().Now() - before, brief.lease - kClockTolerance);
  Expect<Busy>(Permit("d", 2));
  Expect<HoldGone>(Release(brief.hold));
}

TEST_P(ModesTest, AllReadersExpireTogetherAndTheKeyIsFree) {
  for (const char* owner : {"a", "b", "c"}) {
    AcquireOp op = Read(owner);
    op.lease = absl::Milliseconds(150);
    op.note = "with a note";
    Expect<Granted>(op);
  }
  AcquireWhenFree(Write("w"), absl::Seconds(5));
  const KeyReport report = Look();
  ASSERT_EQ(report.holders.size(), 1u);
  EXPECT_EQ(report.mode, Mode::kExclusive);
  EXPECT_EQ(report.holders[0].note, "");
}

TEST_P(ModesTest, AMinHoldOfAReaderKeepsWritersOut) {
  AcquireOp op = Read("a");
  op.min_hold = absl::Milliseconds(300);
  Expect<Granted>(op);
  Expect<Granted>(Read("b"));
  EXPECT_EQ(Give(op).kept_for, absl::ZeroDuration()) << "others read on";
  EXPECT_GT(Give(Read("b")).kept_for, absl::ZeroDuration());
  EXPECT_LE(Expect<Busy>(Write("w")).free_in, absl::Milliseconds(300));
  Expect<Granted>(Read("c"));
  EXPECT_GT(Give(Read("c")).kept_for, absl::ZeroDuration());
  AcquireWhenFree(Write("w"), absl::Seconds(5));
}

TEST_P(ModesTest, AMinHoldOfAPermitKeepsThatPermit) {
  AcquireOp op = Permit("a", 2);
  op.min_hold = absl::Milliseconds(300);
  Expect<Granted>(op);
  const Released released = Give(op);
  EXPECT_FALSE(released.freed);
  EXPECT_GT(released.kept_for, absl::ZeroDuration());
  EXPECT_TRUE(Look().holders.empty());
  EXPECT_FALSE(Look().free());
  EXPECT_FALSE(Expect<Granted>(Permit("b", 2)).more_fit);
  EXPECT_LE(Expect<Busy>(Permit("c", 2)).free_in, absl::Milliseconds(300));
  AcquireWhenFree(Permit("c", 2), absl::Seconds(5));
}

TEST_P(ModesTest, TheLastReadersReleaseWakes) {
  const HoldRef a = Hold("k", "a");
  Expect<Granted>(Read("a"));
  Expect<Granted>(Read("b"));
  Expect<Subscribed>(SubscribeOp{a.name});
  AcquireOp waiting = Write("w");
  waiting.will_wait = true;
  Expect<Busy>(waiting);
  client_->ForgetEvents();
  Give(Read("a"));
  Give(Read("b"));
  EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value());
  Expect<Granted>(waiting);
}

TEST_P(ModesTest, APermitsReleaseWakes) {
  Expect<Granted>(Permit("a", 2));
  Expect<Granted>(Permit("b", 2));
  Expect<Subscribed>(SubscribeOp{{"default", "k"}});
  AcquireOp waiting = Permit("c", 2);
  waiting.will_wait = true;
  for (const std::string owner : {"a", "b"}) {
    Expect<Busy>(waiting);
    client_->ForgetEvents();
    EXPECT_TRUE(Give(Permit(owner, 2)).freed);
    EXPECT_TRUE(client_->WaitEvent(StoreEvent::Kind::kWake).has_value()) << owner;
    Expect<Granted>(Permit(absl::StrCat("next-", owner), 2));
  }
}

TEST_P(ModesTest, ManyReadersAndManyPermits) {
  for (const bool permit : {false, true}) {
    const auto make = [&](int i) {
      const std::string owner = absl::StrCat("owner-", i);
      return permit ? Permit(owner, 200) : Read(owner);
    };
    std::vector<uint64_t> ids;
    for (int i = 0; i < 200; ++i) ids.push_back(client_->Submit(make(i)));
    for (uint64_t id : ids) As<Granted>(client_->Wait(id));
    EXPECT_EQ(Look().holders.size(), 200u);
    EXPECT_EQ(Look().holds, 200u);
    ListPage page;
    do {
      page = Expect<ListPage>(ListOp{"default", "", page.next_cursor});
    } while (page.keys.empty() && !page.next_cursor.empty());
    ASSERT_EQ(page.keys.size(), 1u);
    EXPECT_EQ(page.keys[0].holders.size(), limits::kMaxHoldersInAnswer);
    EXPECT_EQ(page.keys[0].holds, 200u);
    const Busy busy = Expect<Busy>(permit ? Permit("one-more", 200) : Write("one-more"));
    EXPECT_EQ(busy.holders.size(), limits::kMaxHoldersInAnswer);
    ids.clear();
    for (int i = 0; i < 200; ++i) ids.push_back(client_->Submit(Release(make(i).hold)));
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(As<Released>(client_->Wait(ids[i])).freed, permit || i + 1 == ids.size());
    }
    EXPECT_TRUE(Look().free());
  }
}

}  // namespace
}  // namespace holdfast::testing
