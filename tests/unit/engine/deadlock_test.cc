// SPDX-License-Identifier: Apache-2.0
#include "src/engine/deadlock.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Deadlock : public ::testing::Test {
 protected:
  uint64_t Want(uint64_t channel, const std::string& key, const std::string& owner,
                Mode mode = Mode::kExclusive) {
    Acquire acquire = rig_.MakeAcquire(key, owner);
    acquire.mode = mode;
    acquire.wait = absl::Minutes(10);
    return rig_.Ask(channel, acquire);
  }
  Grant Take(uint64_t channel, const std::string& key, const std::string& owner,
             Mode mode = Mode::kExclusive) {
    Acquire acquire = rig_.MakeAcquire(key, owner);
    acquire.mode = mode;
    return rig_.Take(channel, acquire);
  }
  // "owner>key" for each step of the refusal; empty: it was not refused so.
  std::vector<std::string> CycleOf(uint64_t channel, uint64_t request) {
    std::vector<std::string> steps;
    const auto refused = rig_.Answer<NotAcquired>(channel, request);
    if (!refused.has_value() || refused->reason != NotAcquiredReason::kDeadlock) return steps;
    for (const CycleStep& step : refused->cycle) {
      steps.push_back(absl::StrCat(step.owner, ">", step.name.key));
    }
    return steps;
  }
  void CheckGrantThatCloses(uint64_t bobs_channel) {
    for (uint64_t channel = 1; channel <= 3; ++channel) rig_.Open(channel);
    Take(1, "a", kAlice);
    const Grant b = Take(3, "b", kCarol);
    const uint64_t for_a = Want(2, "a", kBob);
    const uint64_t for_b = Want(bobs_channel, "b", kBob);
    const uint64_t alice = Want(1, "b", kAlice);
    EXPECT_EQ(rig_.Answers(1, alice), 0);
    rig_.GiveUp(3, b);
    EXPECT_TRUE(rig_.Answer<Grant>(bobs_channel, for_b).has_value());
    EXPECT_THAT(CycleOf(1, alice), ElementsAre(Step(kAlice, "b"), Step(kBob, "a")));
    EXPECT_EQ(rig_.Answers(2, for_a), 0);
  }
  static std::string Step(const std::string& owner, const std::string& key) {
    return absl::StrCat(owner, ">", key);
  }

  EngineRig rig_;
};

TEST_F(Deadlock, TheRequestThatClosesACycleIsRefusedWithItsNamesAndTheOtherOneGoesOn) {
  rig_.Open(1);
  rig_.Open(2);
  Take(1, "a", kAlice);
  const Grant b = Take(2, "b", kBob);
  const uint64_t first = Want(1, "b", kAlice);
  const uint64_t second = Want(2, "a", kBob);
  EXPECT_THAT(CycleOf(2, second), ElementsAre(Step(kBob, "a"), Step(kAlice, "b")));
  EXPECT_EQ(rig_.Answers(1, first), 0);
  rig_.GiveUp(2, b);
  EXPECT_TRUE(rig_.Answer<Grant>(1, first).has_value());
}

TEST_F(Deadlock, ACycleOfThreeIsFoundBehindOtherWaitersToo) {
  for (uint64_t channel = 1; channel <= 4; ++channel) rig_.Open(channel);
  Take(1, "a", kAlice);
  Take(2, "b", kBob);
  Take(3, "k", kCarol);
  const uint64_t unrelated = Want(4, "a", "");
  Want(1, "b", kAlice);
  Want(2, "k", kBob);
  const uint64_t last = Want(3, "a", kCarol);
  EXPECT_THAT(CycleOf(3, last), ElementsAre(Step(kCarol, "a"), Step(kAlice, "b"), Step(kBob, "k")));
  EXPECT_EQ(rig_.Answers(4, unrelated), 0);
}

TEST_F(Deadlock, BareLeasesAreSeenThroughWhatTheStoreSays) {
  Take(1, "a", kAlice);
  Take(2, "b", kBob);
  Want(3, "b", kAlice);
  rig_.Pass(absl::Milliseconds(1));
  const uint64_t second = Want(4, "a", kBob);
  EXPECT_THAT(CycleOf(4, second), ElementsAre(Step(kBob, "a"), Step(kAlice, "b")));
}

TEST_F(Deadlock, WhatOneOwnerHoldsInAnySessionCounts) {
  for (uint64_t channel = 1; channel <= 3; ++channel) rig_.Open(channel);
  Take(1, "a", kAlice);
  Take(2, "b", kBob);
  Want(3, "b", kAlice);
  EXPECT_THAT(CycleOf(2, Want(2, "a", kBob)), ElementsAre(Step(kBob, "a"), Step(kAlice, "b")));
}

TEST_F(Deadlock, WithoutACycleNobodyIsRefused) {
  for (uint64_t channel = 1; channel <= 3; ++channel) rig_.Open(channel);
  Take(1, "a", kAlice);
  Take(2, "b", kBob);
  const uint64_t chain = Want(2, "a", kBob);
  const uint64_t behind = Want(3, "b", kCarol);
  EXPECT_EQ(rig_.Answers(2, chain) + rig_.Answers(3, behind), 0);
  Acquire once = rig_.MakeAcquire("b", kAlice);
  const auto busy = rig_.Answer<NotAcquired>(1, rig_.Ask(1, once));
  ASSERT_TRUE(busy.has_value());
  EXPECT_EQ(busy->reason, NotAcquiredReason::kBusy) << "who does not wait closes nothing";
}

TEST_F(Deadlock, WhatWasReleasedBeforeItsOwnerWaitedIsLookedAtAgain) {
  rig_.Open(2);
  const Grant a = Take(1, "a", kAlice);
  Take(2, "b", kBob);
  const uint64_t waiting = Want(2, "a", kBob);
  rig_.Pass(absl::Milliseconds(1));
  // Through another daemon, and the wake-up is lost.
  rig_.table().Apply(
      StoreRequest{1, ReleaseOp{{a.name, a.owner, a.hold_id, "", 1}, ReleaseKind::kOne, ""}},
      rig_.now());
  rig_.table().TakeFreed();
  const uint64_t second = Want(3, "b", kAlice);
  EXPECT_THAT(CycleOf(3, second), IsEmpty());
  EXPECT_THAT(CycleOf(2, waiting), IsEmpty());
  rig_.Pass(absl::Seconds(6));
  EXPECT_TRUE(rig_.Answer<Grant>(2, waiting).has_value());
}

TEST_F(Deadlock, AGrantThatClosesACycleIsNoticed) { CheckGrantThatCloses(2); }

TEST_F(Deadlock, AGrantOfABareLeaseThatClosesACycleIsNoticed) { CheckGrantThatCloses(20); }

TEST_F(Deadlock, AWriterWaitsForEachReader) {
  for (uint64_t channel = 1; channel <= 3; ++channel) rig_.Open(channel);
  Take(1, "k", kAlice, Mode::kShared);
  Take(2, "k", kBob, Mode::kShared);
  Take(3, "a", kCarol);
  Want(2, "a", kBob);
  EXPECT_THAT(CycleOf(3, Want(3, "k", kCarol)), ElementsAre(Step(kCarol, "k"), Step(kBob, "a")));
}

TEST_F(Deadlock, AHoldThatIsLostOrBeingReleasedHoldsNobodyUp) {
  rig_.Open(1);
  rig_.Open(2);
  Take(1, "a", kAlice);
  Take(2, "b", kBob);
  Want(1, "b", kAlice);
  rig_.Tell(9, ForceRelease{{}, {"default", "a"}, "", false, ""});
  EXPECT_THAT(CycleOf(2, Want(2, "a", kBob)), IsEmpty());
}

TEST_F(Deadlock, ARefusedCommandMaySentAgainUnderItsId) {
  rig_.Open(1);
  rig_.Open(2);
  Take(1, "a", kAlice);
  const Grant b = Take(2, "b", kBob);
  const uint64_t first = Want(1, "b", kAlice);
  Acquire again = rig_.MakeAcquire("a", kBob);
  again.wait = absl::Minutes(1);
  again.command_id = "command-1";
  EXPECT_FALSE(CycleOf(2, rig_.Ask(2, again)).empty());
  rig_.GiveUp(2, b);
  EXPECT_TRUE(rig_.Answer<Grant>(1, first).has_value());
  const uint64_t retry = rig_.Ask(2, again);
  EXPECT_EQ(rig_.Answers(2, retry), 0);
}

TEST(FindCycle, IsBoundedInLengthAndVisits) {
  // 1 -> 2 -> ... -> 10 -> 1, and a long way that leads nowhere.
  const auto edges = [](LocalId id) {
    if (id > 10) return std::vector<WaitEdge>{{id + 1, true}};
    return std::vector<WaitEdge>{{id % 10 + 1, id != 3}};
  };
  size_t budget = 100;
  const auto cycle = FindCycle(1, edges, 10, &budget);
  ASSERT_TRUE(cycle.has_value());
  EXPECT_THAT(cycle->waiters, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(cycle->doubtful, ElementsAre(3));
  EXPECT_EQ(budget, 90u);
  EXPECT_FALSE(FindCycle(1, edges, 9, &budget).has_value());
  EXPECT_FALSE(FindCycle(11, edges, 1'000'000, &budget).has_value());
  EXPECT_EQ(budget, 0u);
}

}  // namespace
}  // namespace holdfast::engine
