// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

Acquire WithCommand(EngineRig& rig, const std::string& id, const std::string& owner = kAlice) {
  Acquire acquire = rig.MakeAcquire("k", owner);
  acquire.command_id = id;
  return acquire;
}

TEST(Retries, ARepeatedAcquireCountsOnce) {
  EngineRig rig;
  rig.Open(1);
  const Grant first = rig.Take(1, WithCommand(rig, "c1"));
  const Grant second = rig.Take(1, WithCommand(rig, "c1"));
  EXPECT_EQ(second.hold_id, first.hold_id);
  EXPECT_EQ(second.hold_count, 1u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, first))->remaining_count, 0u);
}

TEST(Retries, ALateCopySaysWhatRemainsOfTheLease) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, WithCommand(rig, "c1"));
  rig.Pass(absl::Seconds(4));
  const Grant copy = rig.Take(1, WithCommand(rig, "c1"));
  EXPECT_EQ(copy.lease, absl::Seconds(26));
  EXPECT_EQ(copy.waited, absl::ZeroDuration());
}

TEST(Retries, ACopyThatJoinsAWaiterCountsFromItsOwnRequest) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant held = rig.Take(1, rig.MakeAcquire("k", kBob));
  Acquire waiting = WithCommand(rig, "c1");
  waiting.wait = absl::Minutes(1);
  const uint64_t first = rig.Ask(2, waiting);
  rig.Pass(absl::Seconds(3));
  const uint64_t second = rig.Ask(2, waiting);
  rig.Pass(absl::Seconds(2));
  rig.GiveUp(1, held);
  EXPECT_EQ(rig.Answer<Grant>(2, first)->waited, absl::Milliseconds(4995));
  EXPECT_EQ(rig.Answer<Grant>(2, second)->waited, absl::Milliseconds(1998));
  EXPECT_EQ(rig.Answer<Grant>(2, second)->hold_count, 1u);
}

TEST(Retries, ARepeatedReleaseDoesNotReleaseAReentry) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const Grant inner = rig.Take(1, rig.MakeAcquire("k", kAlice));
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner, "r1"))->remaining_count, 1u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner, "r1"))->remaining_count, 1u);
  EXPECT_EQ(rig.OwnerOf("k"), kAlice);
}

TEST(Retries, ARepeatedReleaseOfTheLastCountIsAnsweredAgain) {
  EngineRig rig;
  const Grant bare = rig.Take(5, rig.MakeAcquire("k", kAlice));
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(6, rig.GiveUp(6, bare, "r1"))->remaining_count, 0u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(7, rig.GiveUp(7, bare, "r1"))->remaining_count, 0u);
  EXPECT_EQ(rig.Refused(8, rig.GiveUp(8, bare)), Reason::kLeaseExpired);
}

TEST(Retries, OneIdForTwoCommandsIsAnError) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, WithCommand(rig, "c1"));
  Acquire other = WithCommand(rig, "c1");
  other.lease = absl::Seconds(20);
  EXPECT_EQ(rig.Refused(1, rig.Ask(1, other)), Reason::kCommandMismatch);
}

TEST(Retries, ARepeatedAcquireWhoseHoldIsOverIsNotRunAgain) {
  EngineRig rig;
  rig.Open(1);
  rig.GiveUp(1, rig.Take(1, WithCommand(rig, "c1")));
  EXPECT_EQ(rig.Refused(1, rig.Ask(1, WithCommand(rig, "c1"))), Reason::kLeaseExpired);
  const Grant bare = rig.Take(5, WithCommand(rig, "c2", ""));
  EXPECT_EQ(rig.Take(6, WithCommand(rig, "c2", "")).hold_id, bare.hold_id);
  rig.GiveUp(7, bare);
  EXPECT_EQ(rig.Refused(8, rig.Ask(8, WithCommand(rig, "c2", ""))), Reason::kLeaseExpired);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Retries, AForgottenCommandIsRefusedNotRun) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  rig.GiveUp(1, rig.Take(1, WithCommand(rig, "c1")));
  rig.Pass(limits::kCommandMemory);
  EXPECT_EQ(rig.Refused(1, rig.Ask(1, WithCommand(rig, "c1"))), Reason::kCommandForgotten);
  EXPECT_EQ(rig.OwnerOf("k"), "");
}

TEST(Retries, ACommandIsRememberedAsLongAsItsHoldLives) {
  EngineRig rig;
  rig.Open(1, absl::ZeroDuration());
  const Grant first = rig.Take(1, WithCommand(rig, "c1"));
  rig.Pass(limits::kCommandMemory * 3);
  EXPECT_EQ(rig.Take(1, WithCommand(rig, "c1")).hold_id, first.hold_id);
}

TEST(Retries, ACommandWithoutEffectMayBeRunAgain) {
  EngineRig rig;
  rig.Open(1);
  rig.Open(2);
  const Grant held = rig.Take(1, rig.MakeAcquire("k", kBob));
  EXPECT_TRUE(rig.Answer<NotAcquired>(2, rig.Ask(2, WithCommand(rig, "c1"))).has_value());
  rig.GiveUp(1, held);
  EXPECT_EQ(rig.Take(2, WithCommand(rig, "c1")).hold_count, 1u);
}

TEST(Retries, AnUndoneAcquireMayBeRunAgain) {
  EngineRig rig;
  rig.HoldUp();
  const uint64_t lost = rig.Ask(5, WithCommand(rig, "c1"));
  rig.Down(/*carry_out=*/true);
  EXPECT_EQ(rig.Refused(5, lost), Reason::kStoreUnreachable);
  rig.LetGo();
  rig.Up();
  const Grant grant = rig.Take(6, WithCommand(rig, "c1"));
  EXPECT_EQ(grant.hold_count, 1u);
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(7, rig.GiveUp(7, grant))->remaining_count, 0u);
}

TEST(Retries, AReleaseWhoseAnswerWasLostIsDoneOnce) {
  EngineRig rig;
  rig.Open(1);
  rig.Take(1, rig.MakeAcquire("k", kAlice));
  const Grant inner = rig.Take(1, rig.MakeAcquire("k", kAlice));
  rig.HoldUp();
  const uint64_t first = rig.GiveUp(1, inner, "r1");
  rig.Down(/*carry_out=*/true);
  EXPECT_EQ(rig.Refused(1, first), Reason::kStoreUnreachable);
  rig.LetGo();
  rig.Up();
  EXPECT_EQ(rig.Answer<ReleaseAnswer>(1, rig.GiveUp(1, inner, "r1"))->remaining_count, 1u);
}

}  // namespace
}  // namespace holdfast::engine
