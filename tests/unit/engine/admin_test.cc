// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

ForceRelease Force(const std::string& key, bool immediate = false) {
  return ForceRelease{{}, {"default", key}, "", immediate, ""};
}

uint64_t WaitFor(EngineRig& rig, uint64_t channel, const std::string& key,
                 const std::string& owner = "") {
  Acquire waiting = rig.MakeAcquire(key, owner);
  waiting.wait = absl::Minutes(10);
  return rig.Ask(channel, waiting);
}

TEST(ForceRelease, TellsTheHolderFirstAndGrantsOnAfterItsAcknowledgement) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  const uint64_t waiting = WaitFor(rig, 2, "k");
  const auto answer = rig.Answer<ForceAnswer>(9, rig.Tell(9, Force("k")));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->forced.holds, 1u);
  EXPECT_EQ(answer->forced.over_in, absl::Seconds(30));
  EXPECT_FALSE(answer->overlap_possible);
  ASSERT_TRUE(rig.Find<Lost>(1).has_value());
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kForced);
  EXPECT_EQ(rig.Answers(2, waiting), 0);
  rig.Tell(1, LostAck{{}, grant.hold_id});
  EXPECT_TRUE(rig.Answer<Grant>(2, waiting).has_value());
  rig.Tell(9, Force("k"));
  EXPECT_EQ(rig.Count<Lost>(1), 1);
}

TEST(ForceRelease, WithoutAnAcknowledgementTheLeaseIsWaitedForAndNotRenewed) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const uint64_t waiting = WaitFor(rig, 2, "k");
  rig.Tell(9, Force("k"));
  const int64_t renewals = rig.renewals();
  rig.Pass(absl::Seconds(29));
  EXPECT_EQ(rig.Answers(2, waiting), 0);
  EXPECT_EQ(rig.renewals(), renewals);
  rig.Pass(absl::Seconds(2));
  EXPECT_TRUE(rig.Answer<Grant>(2, waiting).has_value());
}

TEST(ForceRelease, ImmediateGrantsOnAtOnceTellsTheHolderAndAdmitsTheOverlap) {
  EngineRig rig;
  rig.Open(1);
  const Grant grant = rig.Take(1, rig.MakeAcquire("k", kAlice));
  const uint64_t waiting = WaitFor(rig, 2, "k");
  const auto answer = rig.Answer<ForceAnswer>(9, rig.Tell(9, Force("k", true)));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->forced.holds, 1u);
  EXPECT_TRUE(answer->overlap_possible);
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kForced);
  ASSERT_TRUE(rig.Answer<Grant>(2, waiting).has_value());
  EXPECT_GT(rig.Answer<Grant>(2, waiting)->token, grant.token);
  EXPECT_EQ(rig.Refused(1, rig.GiveUp(1, grant)), Reason::kNotOwner);
}

TEST(ForceRelease, OfABareLeaseEndsWithItsPresentLease) {
  EngineRig rig;
  const Grant grant = rig.Take(7, rig.MakeAcquire("k", kAlice));
  const uint64_t waiting = WaitFor(rig, 2, "k");
  rig.Pass(absl::Seconds(10));
  EXPECT_EQ(rig.Answer<ForceAnswer>(9, rig.Tell(9, Force("k")))->forced.over_in, absl::Seconds(20));
  Renew renew{{}, grant.name, grant.owner, grant.hold_id, absl::Seconds(30), ""};
  const auto renewed = rig.Answer<RenewAnswer>(8, rig.Tell(8, renew));
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(renewed->lease, absl::Seconds(20));
  EXPECT_EQ(renewed->max_hold_remaining, absl::Seconds(20));
  rig.Pass(absl::Seconds(21));
  EXPECT_TRUE(rig.Answer<Grant>(2, waiting).has_value());
}

TEST(ForceRelease, ByAnotherDaemonIsNoticedAlsoWhereTheOwnerTakesTheKeyOnceMore) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Seconds(1));
  rig.table().Apply(StoreRequest{1, ForceOp{{"default", "k"}, "", false}}, rig.now());
  EXPECT_EQ(rig.Take(1, rig.MakeAcquire("k", kAlice)).max_hold_remaining, absl::Seconds(29));
  rig.Tell(1, Ping{});
  EXPECT_EQ(rig.Find<Pong>(1)->valid_for, absl::Seconds(29));
  rig.Pass(absl::Seconds(11));
  ASSERT_EQ(rig.Count<Lost>(1), 1);
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kForced);
}

TEST(ForceRelease, ByAnotherDaemonIsNoticedAtTheNextRenewal) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Seconds(1));
  rig.table().Apply(StoreRequest{1, ForceOp{{"default", "k"}, "", false}}, rig.now());
  EXPECT_EQ(rig.Count<Lost>(1), 0);
  rig.Pass(absl::Seconds(10));
  ASSERT_EQ(rig.Count<Lost>(1), 1);
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kForced);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Pass(absl::Seconds(20));
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(ForceRelease, AMaxHoldThatComesNearIsNotTakenForOne) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  Acquire acquire = rig.MakeAcquire("k", kAlice);
  acquire.max_hold = absl::Minutes(2);
  rig.Take(1, acquire);
  rig.Pass(absl::Minutes(2));
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kMaxHold);
}

TEST(ForceRelease, OfAFreeKeyOrAnotherHoldEndsNothing) {
  EngineRig rig;
  rig.Open(1);
  EXPECT_EQ(rig.Answer<ForceAnswer>(9, rig.Tell(9, Force("k")))->forced.holds, 0u);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  ForceRelease other = Force("k", true);
  other.hold_id = "no-such-hold";
  const auto answer = rig.Answer<ForceAnswer>(9, rig.Tell(9, other));
  EXPECT_EQ(answer->forced.holds, 0u);
  EXPECT_FALSE(answer->overlap_possible);
  EXPECT_EQ(rig.Count<Lost>(1), 0);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
}

TEST(ForceRelease, SaysWhenTheStoreCannotBeReached) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.HoldUp();
  const uint64_t cut_off = rig.Tell(9, Force("k", true));
  rig.Down(/*carry_out=*/false);
  EXPECT_EQ(rig.Refused(9, cut_off), Reason::kStoreUnreachable);
  EXPECT_EQ(rig.Refused(9, rig.Tell(9, Force("k"))), Reason::kStoreUnreachable);
  rig.LetGo();
  rig.Up();
  EXPECT_EQ(rig.OwnerOf("k"), "") << "its holder was told, so it must come true";
}

TEST(CloseSession, EndsTheStreamWhenItsHoldsAreAcknowledged) {
  EngineRig rig;
  const std::string session = rig.Open(1);
  const Grant a = rig.Take(1, rig.MakeAcquire("a", kAlice));
  const Grant b = rig.Take(1, rig.MakeAcquire("b", kAlice));
  const uint64_t next = WaitFor(rig, 2, "a");
  const auto answer = rig.Answer<CloseSessionAnswer>(9, rig.Tell(9, CloseSession{{}, session}));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->holds, 2u);
  EXPECT_EQ(answer->over_within, absl::Seconds(30));
  EXPECT_EQ(rig.Count<Lost>(1), 2);
  EXPECT_EQ(rig.Find<Lost>(1)->reason, LossReason::kSessionClosed);
  EXPECT_EQ(rig.Refused(1, rig.Ask(1, rig.MakeAcquire("c"))), Reason::kSessionClosed);
  EXPECT_EQ(rig.Answers(2, next), 0);
  rig.Tell(1, LostAck{{}, a.hold_id});
  EXPECT_TRUE(rig.Answer<Grant>(2, next).has_value());
  EXPECT_FALSE(rig.Find<EndStream>(1).has_value());
  rig.Tell(1, LostAck{{}, b.hold_id});
  ASSERT_TRUE(rig.Find<EndStream>(1).has_value());
  EXPECT_EQ(ReasonOf(rig.Find<EndStream>(1)->status), Reason::kSessionClosed);
  EXPECT_EQ(rig.Refused(9, rig.Tell(9, CloseSession{{}, session})), Reason::kSessionNotFound);
}

TEST(CloseSession, WithoutHoldsIsOverAtOnceAndItsWaitersAreRefused) {
  EngineRig rig;
  rig.Take(7, rig.MakeAcquire("k", kAlice));
  const std::string session = rig.Open(1);
  const uint64_t waiting = WaitFor(rig, 1, "k", kBob);
  EXPECT_EQ(rig.Answer<CloseSessionAnswer>(9, rig.Tell(9, CloseSession{{}, session}))->holds, 0u);
  EXPECT_EQ(rig.Refused(1, waiting), Reason::kSessionClosed);
  ASSERT_TRUE(rig.Find<EndStream>(1).has_value());
  EXPECT_EQ(rig.engine().status().sessions, 0u);
  EXPECT_EQ(rig.engine().status().waiters, 0u);
}

TEST(CloseSession, AClientThatHearsNothingKeepsItsHoldsForItsLeaseOrTtl) {
  EngineRig rig;
  const std::string session = rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.Pass(absl::Seconds(4));
  rig.Do(ChannelClosed{1, StreamEnd::kFellSilent});
  EXPECT_EQ(rig.Answer<CloseSessionAnswer>(9, rig.Tell(9, CloseSession{{}, session}))->over_within,
            absl::Seconds(6));
  rig.Pass(absl::Milliseconds(5900));
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
  rig.Pass(absl::Milliseconds(200));
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(ListSessions, TellsOfEachSessionInPages) {
  EngineRig rig;
  const size_t count = limits::kSessionsPerPage + 10;
  for (uint64_t channel = 1; channel <= count; ++channel) rig.Open(channel);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  WaitFor(rig, 2, "k", kBob);
  rig.Pass(absl::Seconds(3));
  rig.Do(ChannelClosed{2, StreamEnd::kFellSilent});
  const auto page = rig.Answer<SessionsAnswer>(5000, rig.Tell(5000, ListSessions{}));
  ASSERT_TRUE(page.has_value());
  ASSERT_EQ(page->sessions.size(), limits::kSessionsPerPage);
  EXPECT_EQ(page->sessions[0].holds, 1u);
  EXPECT_TRUE(page->sessions[0].connected);
  EXPECT_EQ(page->sessions[0].age, absl::Seconds(3));
  EXPECT_EQ(page->sessions[0].principal, "tester");
  EXPECT_EQ(page->sessions[1].waiting, 1u);
  EXPECT_FALSE(page->sessions[1].connected);
  const auto rest = rig.Answer<SessionsAnswer>(5000, rig.Tell(5000, ListSessions{{}, page->next}));
  EXPECT_EQ(rest->sessions.size(), count - limits::kSessionsPerPage);
  EXPECT_EQ(rest->next, 0u);
}

}  // namespace
}  // namespace holdfast::engine
