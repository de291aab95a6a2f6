// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

AcquireAll MakeSet(const std::vector<std::string>& keys, absl::Duration wait = absl::ZeroDuration(),
                   const std::string& owner = "") {
  AcquireAll all;
  all.ns = "default";
  for (const std::string& key : keys) all.keys.push_back(KeyAndMode{key, Mode::kExclusive, 0});
  all.owner = owner;
  all.lease = absl::Seconds(30);
  all.max_hold = absl::ZeroDuration();
  all.wait = wait;
  return all;
}

constexpr absl::Duration kWait = absl::Seconds(5);

TEST(AcquireAll, GrantsEachKeyInTheRequestsOrder) {
  EngineRig rig;
  const std::string session = rig.Open(1);
  const auto all = rig.Answer<AllGranted>(1, rig.Tell(1, MakeSet({"b", "a", "k"})));
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->grants.size(), 3u);
  const std::vector<std::string> keys = {"b", "a", "k"};
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(all->grants[i].name.key, keys[i]);
    EXPECT_EQ(all->grants[i].owner, all->grants[0].owner);
    EXPECT_EQ(all->grants[i].session_id, session);
    EXPECT_EQ(rig.OwnerOf(keys[i]), all->grants[0].owner);
  }
  EXPECT_EQ(rig.engine().status().holds, 3u);
}

TEST(AcquireAll, ABusyKeyLeavesNothingHeldAndIsNamed) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b", "k"}));
  const auto none = rig.Answer<NoneGranted>(2, request);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->busy.key, "b");
  EXPECT_EQ(none->why.reason, NotAcquiredReason::kBusy);
  ASSERT_EQ(none->why.holders.size(), 1u);
  EXPECT_EQ(none->why.holders[0].owner, kAlice);
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.OwnerOf("k"), "");
  EXPECT_EQ(rig.engine().status().holds, 1u);
}

TEST(AcquireAll, APartialHoldIsGivenBackAfterItsBoundAndTheSetWaitsForTheBusyKey) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant held = rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  EXPECT_NE(rig.OwnerOf("a"), "");
  rig.Pass(absl::Milliseconds(199));
  EXPECT_NE(rig.OwnerOf("a"), "");
  rig.Pass(absl::Milliseconds(1));
  EXPECT_EQ(rig.OwnerOf("a"), "");
  rig.Pass(absl::Seconds(2));
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.Answers(2, request), 0);
  rig.GiveUp(1, held);
  const auto all = rig.Answer<AllGranted>(2, request);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->grants[0].waited, absl::Microseconds(2'197'800));
}

TEST(AcquireAll, TheWaitLimitIsExactAndNamesTheHolders) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("a", kAlice));
  for (const absl::Duration wait : {absl::Milliseconds(50), absl::Milliseconds(777)}) {
    const uint64_t request = rig.Tell(2, MakeSet({"k", "b", "a"}, wait));
    rig.Pass(wait - absl::Nanoseconds(1));
    EXPECT_EQ(rig.Answers(2, request), 0);
    rig.Pass(absl::Nanoseconds(1));
    const auto none = rig.Answer<NoneGranted>(2, request);
    ASSERT_TRUE(none.has_value());
    EXPECT_EQ(none->busy.key, "a");
    EXPECT_EQ(none->why.reason, NotAcquiredReason::kWaitExpired);
    ASSERT_EQ(none->why.holders.size(), 1u);
    EXPECT_EQ(none->why.holders[0].owner, kAlice);
    EXPECT_EQ(rig.OwnerOf("b"), "");
  }
}

TEST(AcquireAll, TheWaitLimitCutsAPartialHoldShort) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, absl::Milliseconds(80)));
  rig.Pass(absl::Milliseconds(80));
  const auto none = rig.Answer<NoneGranted>(2, request);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->busy.key, "b");
  EXPECT_EQ(rig.OwnerOf("a"), "");
}

TEST(AcquireAll, OppositeOrdersNeverWaitForEachOther) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Open(3);
  // Set 2 comes to wait for "b" first, so it will hold that when it wants "a".
  const Grant b = rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t second = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  rig.Pass(absl::Milliseconds(250));
  // Set 3 holds "a", and waits for "b" behind set 2.
  const uint64_t third = rig.Tell(3, MakeSet({"b", "a"}, kWait));
  EXPECT_NE(rig.OwnerOf("a"), "");
  rig.GiveUp(1, b);
  // Set 2 got "b", found "a" busy, and gave way.
  const auto all = rig.Answer<AllGranted>(3, third);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(rig.Answers(2, second), 0);
  for (const Grant& grant : all->grants) rig.GiveUp(3, grant);
  EXPECT_TRUE(rig.Answer<AllGranted>(2, second).has_value());
}

TEST(AcquireAll, APartialHoldIsNotSeenByItsSession) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  Acquire waiting = rig.MakeAcquire("a");
  waiting.wait = absl::Minutes(1);
  const uint64_t other = rig.Ask(3, waiting);
  rig.Tell(2, Ping{});
  EXPECT_FALSE(rig.Find<Pong>(2)->valid_for.has_value());
  rig.Flush();  // the store loses it
  rig.Pass(absl::Milliseconds(200));
  EXPECT_EQ(rig.Count<Contended>(2), 0);
  EXPECT_EQ(rig.Count<Lost>(2), 0);
  EXPECT_TRUE(rig.Answer<Grant>(3, other).has_value());
  EXPECT_EQ(rig.Answers(2, request), 0);
}

TEST(AcquireAll, APartialHoldThatIsLostMakesTheSetStartOver) {
  EngineOptions options;
  EngineRig rig(options);
  rig.Open(1);
  rig.Open(2);
  const Grant b = rig.Take(1, rig.MakeAcquire("b", kAlice));
  AcquireAll set = MakeSet({"a", "b"}, kWait);
  set.lease = absl::Milliseconds(600);  // held for 150 ms, so not renewed in that time
  const uint64_t request = rig.Tell(2, set);
  rig.table().Restore({"default", "a"}, std::nullopt);
  rig.Pass(absl::Milliseconds(100));
  rig.Take(3, rig.MakeAcquire("a", kBob));
  rig.GiveUp(1, b);
  // Known only from a renewal: till then this engine believes what the store said.
  const auto all = rig.Answer<AllGranted>(2, request);
  ASSERT_TRUE(all.has_value());
  rig.Pass(absl::Milliseconds(200));
  EXPECT_EQ(rig.Find<Lost>(2)->name.key, "a");
}

TEST(AcquireAll, CancelGivesEverythingBack) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  rig.Do(Cancel{{2, request}});
  EXPECT_EQ(rig.Refused(2, request), Reason::kCancelled);
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.engine().status().waiters, 0u);
}

TEST(AcquireAll, ACancelThatCrossesTheLastGrantUndoesAll) {
  EngineRig rig;
  rig.Open(2);
  rig.HoldUp();
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  rig.Do(Cancel{{2, request}});
  rig.LetGo();
  EXPECT_EQ(rig.Answers(2, request), 1);
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.OwnerOf("b"), "");
}

TEST(AcquireAll, TheEndOfTheCallOrSessionGivesEverythingBack) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("b", kAlice));
  rig.Tell(2, MakeSet({"a", "b"}, kWait));
  rig.Do(ChannelClosed{2, StreamEnd::kByClient});
  EXPECT_EQ(rig.OwnerOf("a"), "");
  rig.Tell(7, MakeSet({"a", "b"}, kWait));
  EXPECT_NE(rig.OwnerOf("a"), "");
  rig.Do(ChannelClosed{7, StreamEnd::kByClient});
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.engine().status().waiters, 0u);
}

TEST(AcquireAll, ADrainGivesEverythingBack) {
  EngineRig rig;
  rig.Take(6, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(7, MakeSet({"a", "b"}, kWait));
  rig.Do(Drain{rig.now(), absl::Seconds(1)});
  EXPECT_EQ(rig.Refused(7, request), Reason::kDraining);
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.Count<DrainDone>(0), 1);
}

TEST(AcquireAll, ReentryCountsAndItsUndoLeavesTheOuterHold) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant outer = rig.Take(1, rig.MakeAcquire("a", kAlice));
  rig.Take(2, rig.MakeAcquire("k", kBob));
  const auto inner =
      rig.Answer<AllGranted>(1, rig.Tell(1, MakeSet({"a", "b"}, absl::ZeroDuration(), kAlice)));
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->grants[0].hold_count, 2u);
  EXPECT_EQ(inner->grants[0].token, outer.token);
  // Overlaps with both, and is refused: the counts stay.
  const uint64_t refused = rig.Tell(1, MakeSet({"a", "b", "k"}, absl::Milliseconds(300), kAlice));
  rig.Pass(absl::Seconds(1));
  EXPECT_TRUE(rig.Answer<NoneGranted>(1, refused).has_value());
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner->grants[0]))->remaining_count, 1u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner->grants[1]))->remaining_count, 0u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, outer))->remaining_count, 0u);
  EXPECT_EQ(rig.OwnerOf("a"), "");
}

TEST(AcquireAll, ItsUndoCountsHoweverOftenTheOwnerTookTheKeySince) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant outer = rig.Take(1, rig.MakeAcquire("a", kAlice));
  rig.Take(2, rig.MakeAcquire("b", kBob));
  rig.Tell(1, MakeSet({"a", "b"}, kWait, kAlice));
  for (size_t i = 0; i < limits::kOpsPerHold; ++i) rig.Take(1, rig.MakeAcquire("a", kAlice));
  rig.Pass(limits::kMaxPartialHold);
  for (size_t i = 0; i < limits::kOpsPerHold; ++i) {
    EXPECT_EQ(rig.OwnerOf("a"), kAlice);
    rig.GiveUp(1, outer);
  }
  EXPECT_EQ(rig.OwnerOf("a"), kAlice);
  rig.GiveUp(1, outer);
  EXPECT_EQ(rig.OwnerOf("a"), "");
}

TEST(AcquireAll, MaxHoldCountsFromTheCompleteSet) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2, absl::Minutes(5));
  const Grant b = rig.Take(1, rig.MakeAcquire("b", kAlice));
  AcquireAll set = MakeSet({"a", "b"}, kWait);
  set.max_hold = absl::Seconds(40);
  const uint64_t request = rig.Tell(2, set);
  rig.Pass(absl::Milliseconds(150));
  rig.GiveUp(1, b);
  const auto all = rig.Answer<AllGranted>(2, request);
  ASSERT_TRUE(all.has_value());
  for (const Grant& grant : all->grants) {
    // From the request's receipt: 150 ms until complete, and 40 s from there.
    EXPECT_EQ(grant.waited * 1000 / 999 + *grant.max_hold_remaining, absl::Milliseconds(40'150));
    EXPECT_LE(grant.lease, absl::Seconds(30));
  }
  rig.Pass(absl::Seconds(39));
  EXPECT_EQ(rig.Count<Lost>(2), 0);
  rig.Pass(absl::Seconds(1));
  EXPECT_EQ(rig.Count<Lost>(2), 2);
  EXPECT_EQ(rig.Find<Lost>(2)->reason, LossReason::kMaxHold);
}

TEST(AcquireAll, EachLeaseCountsFromItsOwnSend) {
  EngineRig rig;
  const Grant b = rig.Take(6, rig.MakeAcquire("b", kAlice));
  const uint64_t request = rig.Tell(7, MakeSet({"a", "b"}, kWait));
  rig.Pass(absl::Milliseconds(120));
  rig.GiveUp(6, b);
  const auto all = rig.Answer<AllGranted>(7, request);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->grants[0].waited, absl::ZeroDuration());
  EXPECT_EQ(all->grants[1].waited, absl::Microseconds(119'880));
  EXPECT_EQ(all->grants[0].lease, absl::Seconds(30));
}

TEST(AcquireAll, ARetryIsAnsweredAgainAndNotRunAgain) {
  EngineRig rig;
  rig.Open(1);
  for (const uint64_t channel : {1, 7}) {
    AcquireAll set = MakeSet({"a", "b"});
    set.command_id = "once";
    const auto first = rig.Answer<AllGranted>(channel, rig.Tell(channel, set));
    ASSERT_TRUE(first.has_value());
    rig.Pass(absl::Seconds(1));
    const auto second = rig.Answer<AllGranted>(channel, rig.Tell(channel, set));
    ASSERT_TRUE(second.has_value());
    EXPECT_EQ(second->grants[0].hold_id, first->grants[0].hold_id);
    EXPECT_EQ(second->grants[0].hold_count, 1u);
    EXPECT_LE(second->grants[0].lease, absl::Seconds(29));
    AcquireAll other = MakeSet({"a", "k"});
    other.command_id = "once";
    EXPECT_EQ(rig.Refused(channel, rig.Tell(channel, other)), Reason::kCommandMismatch);
    rig.GiveUp(channel, first->grants[0]);
    EXPECT_EQ(rig.Refused(channel, rig.Tell(channel, set)), Reason::kLeaseExpired);
    rig.GiveUp(channel, first->grants[1]);
  }
}

TEST(AcquireAll, ARetryUnderWayGetsTheSameAnswer) {
  EngineRig rig;
  const Grant b = rig.Take(6, rig.MakeAcquire("b", kAlice));
  AcquireAll set = MakeSet({"a", "b"}, kWait);
  set.command_id = "once";
  const uint64_t first = rig.Tell(7, set);
  rig.Pass(absl::Milliseconds(50));
  const uint64_t second = rig.Tell(8, set);
  rig.Do(ChannelClosed{7, StreamEnd::kByClient});
  rig.GiveUp(6, b);
  EXPECT_EQ(rig.Answers(7, first), 0);
  const auto all = rig.Answer<AllGranted>(8, second);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->grants[0].lease, absl::Seconds(30) - absl::Milliseconds(50));
}

TEST(AcquireAll, ABrokenStoreUndoesWhatItMayHaveDone) {
  EngineRig rig;
  rig.HoldUp();
  const uint64_t request = rig.Tell(7, MakeSet({"a", "b"}));
  rig.Down(/*carry_out=*/true);
  EXPECT_EQ(rig.Refused(7, request), Reason::kStoreUnreachable);
  rig.LetGo();
  EXPECT_NE(rig.OwnerOf("a"), "");
  rig.Up();
  EXPECT_EQ(rig.OwnerOf("a"), "");
}

TEST(AcquireAll, AWaitingSetOutlivesABrokenStore) {
  EngineRig rig;
  rig.Open(2);
  rig.HoldUp();
  const uint64_t request = rig.Tell(2, MakeSet({"a", "b"}, kWait));
  rig.Down(/*carry_out=*/true);
  rig.LetGo();
  rig.Pass(absl::Seconds(1));
  rig.Up();
  ASSERT_TRUE(rig.Answer<AllGranted>(2, request).has_value());
  EXPECT_EQ(rig.Answer<AllGranted>(2, request)->grants[0].hold_count, 1u);
}

TEST(AcquireAll, AStoreThatStallsDoesNotKeepThePartialHold) {
  EngineRig rig;
  const uint64_t before = rig.Tell(7, MakeSet({"k"}));
  EXPECT_TRUE(rig.Answer<AllGranted>(7, before).has_value());
  rig.HoldUp();
  const uint64_t request = rig.Tell(8, MakeSet({"a", "b"}));
  rig.Pass(absl::Milliseconds(100));
  rig.LetGo();
  // The clock stood still while the second key was taken.
  EXPECT_TRUE(rig.Answer<AllGranted>(8, request).has_value());
  rig.HoldUp();
  const uint64_t slow = rig.Tell(9, MakeSet({"c", "d"}));
  rig.Pass(absl::Milliseconds(250));
  rig.LetGo();
  EXPECT_EQ(rig.Refused(9, slow), Reason::kStoreUnreachable);
  EXPECT_EQ(rig.OwnerOf("c"), "");
}

TEST(AcquireAll, ModesAreEachKeysOwn) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  AcquireAll set = MakeSet({"a", "b", "k"});
  set.keys[0].mode = Mode::kShared;
  set.keys[1] = KeyAndMode{"b", Mode::kPermit, 2};
  ASSERT_TRUE(rig.Answer<AllGranted>(1, rig.Tell(1, set)).has_value());
  set.keys.pop_back();
  ASSERT_TRUE(rig.Answer<AllGranted>(2, rig.Tell(2, set)).has_value());
  const auto none = rig.Answer<NoneGranted>(2, rig.Tell(2, set));
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->busy.key, "b");
  set.keys[1].limit = 3;
  const uint64_t request = rig.Tell(2, set);
  EXPECT_EQ(rig.Refused(2, request), Reason::kLimitMismatch);
  EXPECT_EQ(FieldOf(*rig.Answer<absl::Status>(2, request)), "keys[1].limit");
}

TEST(AcquireAll, ASetInHandIsNoPartOfACycle) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("b", kBob));
  const uint64_t set = rig.Tell(2, MakeSet({"a", "b"}, kWait, kAlice));
  Acquire waiting = rig.MakeAcquire("a", kBob);
  waiting.wait = kWait;
  const uint64_t other = rig.Ask(1, waiting);
  EXPECT_EQ(rig.Answers(1, other), 0);
  rig.Pass(absl::Milliseconds(200));
  EXPECT_TRUE(rig.Answer<Grant>(1, other).has_value());
  EXPECT_EQ(rig.Answers(2, set), 0);
}

TEST(AcquireAll, ASetOfAnOwnerWhoHoldsMoreCanCloseACycle) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("a", kAlice));
  rig.Take(2, rig.MakeAcquire("b", kBob));
  Acquire waiting = rig.MakeAcquire("a", kBob);
  waiting.wait = kWait;
  const uint64_t other = rig.Ask(2, waiting);
  const uint64_t set = rig.Tell(1, MakeSet({"b", "k"}, kWait, kAlice));
  const auto none = rig.Answer<NoneGranted>(1, set);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->why.reason, NotAcquiredReason::kDeadlock);
  EXPECT_EQ(none->why.cycle.size(), 2u);
  EXPECT_EQ(rig.Answers(2, other), 0);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(AcquireAll, AnOperatorEndsPartialHoldsWithoutAWord) {
  EngineRig rig;
  const std::string session = rig.Open(1);
  rig.Open(2);
  rig.Take(2, rig.MakeAcquire("b", kBob));
  const uint64_t set = rig.Tell(1, MakeSet({"a", "b"}, kWait));
  ForceRelease force;
  force.name = {"default", "a"};
  force.immediate = true;
  rig.Tell(7, force);
  EXPECT_EQ(rig.OwnerOf("a"), "");
  EXPECT_EQ(rig.Count<Lost>(1), 0);
  rig.Pass(absl::Milliseconds(250));
  const uint64_t again = rig.Tell(1, MakeSet({"c", "b"}, kWait));
  rig.HoldUp();
  CloseSession close;
  close.session_id = session;
  rig.Tell(7, close);
  rig.LetGo();
  EXPECT_EQ(rig.Refused(1, set), Reason::kSessionClosed);
  EXPECT_EQ(rig.Refused(1, again), Reason::kSessionClosed);
  EXPECT_EQ(rig.OwnerOf("c"), "");
  EXPECT_EQ(rig.Count<Lost>(1), 0);
}

TEST(AcquireAll, AFeedIsPromisedFromTheCompleteSetOn) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant b = rig.Take(1, rig.MakeAcquire("b", kAlice));
  AcquireAll set = MakeSet({"a", "b"}, kWait);
  set.feed = absl::Milliseconds(100);
  const uint64_t request = rig.Tell(2, set);
  rig.Pass(absl::Milliseconds(150));
  rig.GiveUp(1, b);
  ASSERT_TRUE(rig.Answer<AllGranted>(2, request).has_value());
  rig.Pass(absl::Milliseconds(90));
  EXPECT_EQ(rig.Count<Lost>(2), 0);
  rig.Pass(absl::Milliseconds(10));
  EXPECT_EQ(rig.Count<Lost>(2), 2);
}

TEST(AcquireAll, WhatIsWrongIsNamedWithItsKey) {
  EngineRig rig;
  const auto field_of = [&](const AcquireAll& set) {
    const uint64_t request = rig.Tell(7, set);
    EXPECT_EQ(rig.Refused(7, request), Reason::kInvalidField);
    return FieldOf(*rig.Answer<absl::Status>(7, request));
  };
  EXPECT_EQ(field_of(MakeSet({})), "keys");
  std::vector<std::string> many;
  for (int i = 0; i < 17; ++i) many.push_back(absl::StrCat("k", i));
  EXPECT_EQ(field_of(MakeSet(many)), "keys");
  EXPECT_EQ(field_of(MakeSet({"a", "b", "a"})), "keys[2].key");
  EXPECT_EQ(field_of(MakeSet({"a", ""})), "keys[1].key");
  AcquireAll set = MakeSet({"a", "b"});
  set.keys[1].limit = 2;
  EXPECT_EQ(field_of(set), "keys[1].limit");
  set = MakeSet({"a", "b"});
  set.wait = -absl::Seconds(1);
  EXPECT_EQ(field_of(set), "wait");
}

}  // namespace
}  // namespace holdfast::engine
