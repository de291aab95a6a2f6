// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

TEST(Line, AGrantSaysWhatItsHolderNeeds) {
  EngineRig rig;
  const std::string session = rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  EXPECT_EQ(grant.owner, kAlice);
  EXPECT_EQ(grant.session_id, session);
  EXPECT_EQ(grant.hold_count, 1u);
  EXPECT_EQ(grant.lease, absl::Seconds(30));
  EXPECT_EQ(grant.waited, absl::ZeroDuration());
  EXPECT_FALSE(grant.max_hold_remaining.has_value());
  EXPECT_GT(grant.token, 0);
}

TEST(Line, WithoutAnOwnerTheDaemonMakesOne) {
  EngineRig rig;
  EXPECT_GE(rig.Take(7, rig.MakeAcquire("k")).owner.size(), limits::kMinOwnerBytes);
}

TEST(Line, WaitersAreServedInOrderOfArrival) {
  EngineRig rig;
  rig.Open(1);
  const Grant first = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  const uint64_t second = rig.Ask(2, waiting);
  const uint64_t third = rig.Ask(3, waiting);
  EXPECT_EQ(rig.Answers(2, second), 0);
  rig.GiveUp(1, first);
  const auto grant = rig.Answer<Grant>(2, second);
  ASSERT_TRUE(grant.has_value());
  EXPECT_GT(grant->token, first.token);
  EXPECT_EQ(rig.Answers(3, third), 0);
  rig.GiveUp(2, *grant);
  EXPECT_TRUE(rig.Answer<Grant>(3, third).has_value());
}

TEST(Line, TheNextWaitersAttemptGoesWithTheRelease) {
  EngineRig rig;
  rig.Open(1);
  const Grant first = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  const uint64_t second = rig.Ask(2, waiting);
  const uint64_t third = rig.Ask(3, waiting);
  rig.HoldUp();
  const uint64_t release = rig.GiveUp(1, first);
  ASSERT_EQ(rig.held_up().size(), 2u);
  EXPECT_TRUE(std::holds_alternative<ReleaseOp>(rig.held_up()[0].op));
  EXPECT_TRUE(std::holds_alternative<AcquireOp>(rig.held_up()[1].op));
  rig.LetGoBackwards();  // a store may have to repeat the release
  EXPECT_EQ(rig.Answers(1, release), 1);
  const auto grant = rig.Answer<Grant>(2, second);
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(rig.Answers(3, third), 0);
  rig.GiveUp(2, *grant);
  EXPECT_TRUE(rig.Answer<Grant>(3, third).has_value());
}

TEST(Line, AnInnerReleaseHandsNothingOver) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const Grant inner = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  rig.Ask(2, waiting);
  rig.HoldUp();
  rig.GiveUp(1, inner);
  EXPECT_EQ(rig.held_up().size(), 1u);
}

TEST(Line, WaitedCountsUntilTheAttemptThatSucceeded) {
  EngineRig rig;
  rig.Open(1);
  const Grant first = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  const uint64_t second = rig.Ask(2, waiting);
  rig.Pass(absl::Seconds(3));
  rig.GiveUp(1, first);
  EXPECT_EQ(rig.Answer<Grant>(2, second)->waited, absl::Milliseconds(2997));
}

TEST(Line, AnHourOfWaitingIsToldShorterByWhatTwoClocksMayDriftApartInIt) {
  EngineRig rig;
  rig.Open(1);
  Acquire holds = rig.MakeAcquire("k", kAlice);
  holds.max_hold = absl::ZeroDuration();
  const Grant first = rig.Take(1, holds);
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Hours(2);
  const uint64_t second = rig.Ask(2, waiting);
  for (int minute = 0; minute < 60; ++minute) {
    for (int i = 0; i < 12; ++i) {
      rig.Pass(absl::Seconds(5));
      rig.Tell(1, Ping{});
    }
  }
  rig.GiveUp(1, first);
  EXPECT_EQ(rig.Answer<Grant>(2, second)->waited, absl::Hours(1) - absl::Milliseconds(3600));
}

TEST(Line, AWaitEndsExactlyWhenTheCallerSaid) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Milliseconds(700);
  const uint64_t request = rig.Ask(2, waiting);
  rig.Pass(absl::Milliseconds(699));
  EXPECT_EQ(rig.Answers(2, request), 0);
  rig.Pass(absl::Milliseconds(1));
  const auto refused = rig.Answer<NotAcquired>(2, request);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, NotAcquiredReason::kWaitExpired);
  ASSERT_EQ(refused->holders.size(), 1u);
  EXPECT_EQ(refused->holders[0].owner, kAlice);
}

TEST(Line, WithoutAWaitABusyKeyIsAnAnswer) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const auto refused = rig.Answer<NotAcquired>(2, rig.Ask(2, rig.MakeAcquire("k", kBob)));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->reason, NotAcquiredReason::kBusy);
}

TEST(Line, TheOwnerPassesTheLineToNest) {
  EngineRig rig;
  rig.Open(1);
  const Grant outer = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k", kBob);
  waiting.wait = absl::Minutes(1);
  rig.Ask(2, waiting);
  const Grant inner = rig.Take(1, rig.MakeAcquire("k", kAlice));
  EXPECT_EQ(inner.hold_count, 2u);
  EXPECT_EQ(inner.hold_id, outer.hold_id);
  EXPECT_EQ(inner.token, outer.token);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner))->remaining_count, 1u);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, outer))->remaining_count, 0u);
  EXPECT_EQ(rig.OwnerOf("k"), kBob);
}

TEST(Line, ReentryCanBeRefused) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire again = rig.MakeAcquire("k", kAlice);
  again.reentry = Reentry::kRefuse;
  EXPECT_EQ(rig.Refused(1, rig.Ask(1, again)), Reason::kReentryRefused);
}

TEST(Line, TwoSessionsOfOneOwnerGiveBackOnlyTheirOwn) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const Grant second = rig.Take(2, rig.MakeAcquire("k", kAlice));
  EXPECT_EQ(second.hold_count, 2u);
  rig.Do(ChannelClosed{1, StreamEnd::kByClient});
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(2, rig.GiveUp(2, second))->remaining_count, 0u);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Line, ACancelledWaiterNeverHolds) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant first = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k", kBob);
  waiting.wait = absl::Minutes(1);
  const uint64_t request = rig.Ask(2, waiting);
  rig.Do(Cancel{{2, request}});
  EXPECT_EQ(rig.Refused(2, request), Reason::kCancelled);
  rig.GiveUp(1, first);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Line, AGrantThatCrossesItsCancellationIsUndone) {
  EngineRig rig;
  rig.Open(2);
  rig.HoldUp();
  const uint64_t request = rig.Ask(2, rig.MakeAcquire("k", kBob));
  rig.Do(Cancel{{2, request}});
  rig.LetGo();
  EXPECT_EQ(rig.Refused(2, request), Reason::kCancelled);
  EXPECT_EQ(rig.Answers(2, request), 1);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Line, ACallThatIsGoneLeavesItsPlace) {
  EngineRig rig;
  rig.Open(1);
  const Grant first = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  rig.Ask(2, waiting);
  const uint64_t third = rig.Ask(3, waiting);
  rig.Do(ChannelClosed{2, StreamEnd::kByClient});
  rig.GiveUp(1, first);
  EXPECT_TRUE(rig.Answer<Grant>(3, third).has_value());
}

TEST(Line, TheHolderHearsOnceThatSomebodyWaits) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  EXPECT_FALSE(rig.Find<Contended>(1).has_value());
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  rig.Ask(2, waiting);
  ASSERT_TRUE(rig.Find<Contended>(1).has_value());
  EXPECT_EQ(rig.Find<Contended>(1)->hold_id, grant.hold_id);
}

TEST(Line, AnUnreachableStoreIsSaidAndWhatItMayHaveDoneIsUndone) {
  for (const bool carried_out : {false, true}) {
    EngineRig rig;
    rig.HoldUp();
    const uint64_t request = rig.Ask(2, rig.MakeAcquire("k", kBob));
    rig.Down(carried_out);
    EXPECT_EQ(rig.Refused(2, request), Reason::kStoreUnreachable);
    EXPECT_EQ(rig.OwnerOf("k"), carried_out ? kBob : "");
    rig.LetGo();
    rig.Up();
    EXPECT_EQ(rig.OwnerOf("k"), "");
  }
}

TEST(Line, AWaiterOutlastsABrokenConnectionAndIsCountedOnce) {
  EngineRig rig;
  rig.Open(1);
  rig.HoldUp();
  Acquire waiting = rig.MakeAcquire("k", kBob);
  waiting.wait = absl::Minutes(1);
  const uint64_t request = rig.Ask(1, waiting);
  rig.Down(/*carry_out=*/true);
  rig.LetGo();
  EXPECT_EQ(rig.Answers(1, request), 0);
  rig.Up();
  const auto grant = rig.Answer<Grant>(1, request);
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->hold_count, 1u);
}

TEST(Line, AGrantThatComesAfterItsLeaseIsNone) {
  EngineRig rig;
  rig.HoldUp();
  Acquire brief = rig.MakeAcquire("k", kBob);
  brief.lease = absl::Milliseconds(200);
  const uint64_t request = rig.Ask(2, brief);
  rig.Pass(absl::Milliseconds(190));
  rig.LetGo();
  EXPECT_FALSE(rig.Answer<Grant>(2, request).has_value());
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Line, AGracePeriodIsAnsweredWithItsLength) {
  EngineRig rig;
  rig.table().SetGrace(rig.now() + absl::Seconds(40));
  const uint64_t request = rig.Ask(2, rig.MakeAcquire("k"));
  EXPECT_EQ(rig.Refused(2, request), Reason::kGracePeriod);
  EXPECT_EQ(RetryAfterOf(*rig.Answer<absl::Status>(2, request)), absl::Seconds(40));
  Acquire patient = rig.MakeAcquire("k");
  patient.wait = absl::Minutes(1);
  const uint64_t waiting = rig.Ask(3, patient);
  rig.Pass(absl::Seconds(39));
  EXPECT_EQ(rig.Answers(3, waiting), 0);
  rig.Pass(absl::Seconds(2));
  EXPECT_TRUE(rig.Answer<Grant>(3, waiting).has_value());
}

}  // namespace
}  // namespace holdfast::engine
