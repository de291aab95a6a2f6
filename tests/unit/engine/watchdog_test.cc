// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

// Passes time as a client does that pings every two seconds.
void PassPinging(EngineRig& rig, uint64_t channel, absl::Duration delay) {
  for (absl::Duration left = delay; left > absl::ZeroDuration(); left -= absl::Seconds(2)) {
    rig.Pass(std::min(left, absl::Seconds(2)));
    rig.Tell(channel, Ping{});
  }
}

TEST(Watchdog, RenewsEveryThirdOfTheLeaseWhileTheClientLives) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  PassPinging(rig, 1, absl::Seconds(9));
  EXPECT_EQ(rig.renewals(), 0);
  PassPinging(rig, 1, absl::Seconds(292));
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  EXPECT_GE(rig.renewals(), 28);
  EXPECT_LE(rig.renewals(), 34);
  EXPECT_FALSE(rig.Find<Lost>(1).has_value());
}

TEST(Watchdog, ASilentClientLosesAllAfterItsTtlAndNotBefore) {
  EngineRig rig;
  rig.Open(1, absl::Seconds(5));
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Seconds(3));
  rig.Tell(1, Ping{});
  rig.Pass(absl::Milliseconds(4999));
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Pass(absl::Milliseconds(1));
  EXPECT_EQ(rig.OwnerOf("k"), "");
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kSessionClosed);
  EXPECT_EQ(ReasonOf(rig.Find<EndStream>(1)->status), Reason::kSessionExpired);
}

TEST(Watchdog, AnEndedStreamFreesAtOnceASilentOneAfterItsTtl) {
  for (const bool silent : {false, true}) {
    EngineRig rig;
    rig.Open(1, absl::Seconds(5));
    rig.Take(1, rig.MakeAcquire("k", kAlice));
    rig.Do(ChannelClosed{1, silent ? StreamEnd::kFellSilent : StreamEnd::kByClient});
    EXPECT_EQ(rig.OwnerOf("k"), silent ? kAlice : "");
    rig.Pass(absl::Seconds(5));
    EXPECT_EQ(rig.OwnerOf("k"), "");
  }
}

TEST(Watchdog, WithoutATtlTheStreamAloneCounts) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Hours(1));
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Do(ChannelClosed{1, StreamEnd::kByClient});
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Watchdog, APongSaysTheLeastRemainingLease) {
  EngineRig rig;
  rig.Open(1);
  rig.Tell(1, Ping{});
  EXPECT_FALSE(rig.Find<Pong>(1)->valid_for.has_value());
  rig.Take(1, rig.MakeAcquire("a", kAlice));
  rig.Pass(absl::Seconds(1));
  Acquire brief = rig.MakeAcquire("b", kAlice);
  brief.lease = absl::Seconds(20);
  rig.Take(1, brief);
  rig.Pass(absl::Seconds(2));
  rig.Tell(1, Ping{});
  EXPECT_EQ(rig.Find<Pong>(1)->valid_for, absl::Seconds(18));
}

TEST(Watchdog, MaxHoldIsToldBeforeTheKeyGoesOn) {
  EngineRig rig;
  rig.Open(1);
  Acquire bounded = rig.MakeAcquire("k", kAlice);
  bounded.lease = absl::Seconds(10);
  bounded.max_hold = absl::Seconds(60);
  const Grant grant = rig.Take(1, bounded);
  EXPECT_EQ(grant.max_hold_remaining, absl::Seconds(60));
  PassPinging(rig, 1, absl::Seconds(59));
  EXPECT_FALSE(rig.Find<Lost>(1).has_value());
  rig.Pass(absl::Milliseconds(790));  // the margin of 10 s is 210 ms
  ASSERT_TRUE(rig.Find<Lost>(1).has_value());
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kMaxHold);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Tell(1, LostAck{{}, grant.hold_id});
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Watchdog, WithoutAnAcknowledgementTheEndOfTheLeaseCounts) {
  EngineRig rig;
  rig.Open(1);
  Acquire bounded = rig.MakeAcquire("k", kAlice);
  bounded.max_hold = absl::Seconds(5);
  rig.Take(1, bounded);
  rig.Pass(absl::Milliseconds(4999));
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Pass(absl::Milliseconds(1));
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Watchdog, AHoldThatIsNotFedIsLost) {
  EngineRig rig;
  rig.Open(1);
  Acquire fed = rig.MakeAcquire("k", kAlice);
  fed.feed = absl::Seconds(2);
  const Grant grant = rig.Take(1, fed);
  for (int i = 0; i < 5; ++i) {
    PassPinging(rig, 1, absl::Milliseconds(1900));
    rig.Tell(1, Feed{{}, grant.hold_id});
  }
  EXPECT_FALSE(rig.Find<Lost>(1).has_value());
  PassPinging(rig, 1, absl::Seconds(2));
  ASSERT_TRUE(rig.Find<Lost>(1).has_value());
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kFeedMissed);
  EXPECT_EQ(rig.Refused(1, rig.Tell(1, Feed{{}, grant.hold_id})), Reason::kLeaseExpired);
  const int64_t renewals = rig.renewals();
  PassPinging(rig, 1, absl::Seconds(31));
  EXPECT_EQ(rig.renewals(), renewals);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Watchdog, AHoldThatTheStoreLostIsToldAtTheNextRenewal) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Flush();
  PassPinging(rig, 1, absl::Seconds(11));
  ASSERT_TRUE(rig.Find<Lost>(1).has_value());
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kStoreLostIt);
}

TEST(Watchdog, WithoutTheStoreAHoldIsLostAMarginBeforeItsLeaseEnds) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Down(false);
  PassPinging(rig, 1, absl::Seconds(29));
  EXPECT_FALSE(rig.Find<Lost>(1).has_value());
  rig.Pass(absl::Milliseconds(390));  // the margin of 30 s is 610 ms
  ASSERT_TRUE(rig.Find<Lost>(1).has_value());
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kLeaseExpired);
}

TEST(Watchdog, AStoreThatIsBackInTimeIsAskedAtOnce) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Down(false);
  PassPinging(rig, 1, absl::Seconds(25));
  rig.Up();
  rig.Pass(absl::ZeroDuration());
  EXPECT_EQ(rig.renewals(), 1);
  PassPinging(rig, 1, absl::Seconds(20));
  EXPECT_FALSE(rig.Find<Lost>(1).has_value());
}

TEST(Watchdog, AReleaseThatCannotBeDoneNowIsOwedAndNotRenewed) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Down(false);
  EXPECT_EQ(rig.Refused(1, rig.GiveUp(1, grant)), Reason::kStoreUnreachable);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Up();
  EXPECT_EQ(rig.OwnerOf("k"), "");
  EXPECT_EQ(rig.renewals(), 0);
}

TEST(Watchdog, DrainWaitsForHoldersThenTellsThem) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  Acquire waiting = rig.MakeAcquire("k");
  waiting.wait = absl::Minutes(1);
  const uint64_t waiter = rig.Ask(2, waiting);
  rig.Do(Drain{rig.now(), absl::Seconds(5)});
  EXPECT_EQ(rig.Find<Draining>(1)->limit, absl::Seconds(5));
  EXPECT_EQ(rig.Refused(2, waiter), Reason::kDraining);
  EXPECT_EQ(rig.Refused(3, rig.Ask(3, rig.MakeAcquire("b"))), Reason::kDraining);
  rig.Pass(absl::Seconds(5));
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kDrained);
  EXPECT_FALSE(rig.Find<DrainDone>(0).has_value());
  rig.Tell(1, LostAck{{}, grant.hold_id});
  EXPECT_EQ(rig.Find<DrainDone>(0)->left_to_lease, 0u);
  rig.Pass(absl::Minutes(1));
  EXPECT_EQ(rig.Count<DrainDone>(0), 1);
}

TEST(Watchdog, DrainIsDoneWhenTheLastHolderReleases) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Do(Drain{rig.now(), absl::Seconds(5)});
  EXPECT_FALSE(rig.Find<DrainDone>(0).has_value());
  rig.GiveUp(1, grant);
  EXPECT_TRUE(rig.Find<DrainDone>(0).has_value());
  rig.Pass(absl::Minutes(1));
  EXPECT_EQ(rig.Count<DrainDone>(0), 1);
}

TEST(Watchdog, AnInnerReleaseThatCrossesTheLossFreesNothing) {
  EngineRig rig;
  rig.Open(1);
  Acquire fed = rig.MakeAcquire("k", kAlice);
  fed.feed = absl::Seconds(1);
  rig.Take(1, fed);
  const Grant inner = rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Seconds(1));
  ASSERT_EQ(rig.Count<Lost>(1), 1);
  // Sent before its client heard of the loss: the outer work may still go on.
  EXPECT_EQ(rig.Refused(1, rig.GiveUp(1, inner)), Reason::kLeaseExpired);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Tell(1, LostAck{{}, inner.hold_id});
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

}  // namespace
}  // namespace holdfast::engine
