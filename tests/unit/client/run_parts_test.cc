// SPDX-License-Identifier: Apache-2.0
//
// The parts of `run` that are arithmetic on times and texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/nesting.h"
#include "client/cli/quote.h"
#include "client/cli/stop_plan.h"

namespace holdfast::cli {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

BootTime At(absl::Duration since_boot) { return BootTime() + since_boot; }

TEST(StopPlan, TheCommandHasAQuarterOfWhatRunsOutFirst) {
  EXPECT_EQ(StopSpan(absl::Seconds(8), absl::ZeroDuration()), absl::Seconds(2));
  EXPECT_EQ(StopSpan(absl::Seconds(30), absl::Seconds(10)), absl::Milliseconds(2500));
  EXPECT_EQ(StopSpan(absl::Hours(1), absl::ZeroDuration()), absl::Seconds(5));
}

TEST(StopPlan, KillComesBeforeTheEndOfTheValidity) {
  const StopTimes plan = PlanStop(At(absl::Seconds(100)), absl::Seconds(2));
  EXPECT_EQ(plan.term_at, At(absl::Seconds(98)));
  EXPECT_EQ(plan.kill_at, At(absl::Seconds(100) - absl::Milliseconds(250)));
  const StopTimes tight = PlanStop(At(absl::Seconds(100)), absl::Milliseconds(25));
  EXPECT_LT(tight.term_at, tight.kill_at);
  EXPECT_LT(tight.kill_at, At(absl::Seconds(100)));
}

TEST(StopPlan, ADeclaredLossStopsAtOnce) {
  const StopTimes plan =
      PlanStopNow(At(absl::Seconds(50)), At(absl::Seconds(100)), absl::Seconds(2));
  EXPECT_EQ(plan.term_at, At(absl::Seconds(50)));
  EXPECT_EQ(plan.kill_at, At(absl::Seconds(52)));
  EXPECT_EQ(PlanStopNow(At(absl::Seconds(99)), At(absl::Seconds(100)), absl::Seconds(2)).kill_at,
            At(absl::Seconds(100) - absl::Milliseconds(250)));
}

TEST(StopPlan, AfterTheEndThereIsNoTimeForTerm) {
  const StopTimes plan =
      PlanStopNow(At(absl::Seconds(200)), At(absl::Seconds(100)), absl::Seconds(2));
  EXPECT_EQ(plan.kill_at, At(absl::Seconds(200)));
}

TEST(Nesting, TheCommandIsToldAboutItsLock) {
  const Environment inside = EnvironmentInside(
      {"PATH=/bin", "HOLDFAST_OWNER=old", "HOLDFAST_ADDRESS=a:1"}, {{{"", "k"}, "owner-1", 42}});
  EXPECT_THAT(inside, Contains("PATH=/bin"));
  EXPECT_THAT(inside, Contains("HOLDFAST_ADDRESS=a:1"));
  EXPECT_THAT(inside, Contains("HOLDFAST_TOKEN=42"));
  EXPECT_THAT(inside, Contains("HOLDFAST_KEY=k"));
  EXPECT_THAT(inside, Contains("HOLDFAST_OWNER=owner-1"));
  EXPECT_THAT(inside, Not(Contains("HOLDFAST_OWNER=old")));
}

TEST(Nesting, AKeyThatAnyOuterRunHoldsIsTakenAsItsOwner) {
  const Environment outer = EnvironmentInside({}, {{{"", "a"}, "owner-a", 1}});
  const Environment inner = EnvironmentInside(outer, {{{"", "b"}, "owner-b", 2}});
  EXPECT_EQ(OwnerAround(outer, {"", "a"}), "owner-a");
  EXPECT_EQ(OwnerAround(inner, {"", "a"}), "owner-a");
  EXPECT_EQ(OwnerAround(inner, {"", "b"}), "owner-b");
  EXPECT_THAT(OwnerAround(inner, {"", "c"}), IsEmpty());
  EXPECT_THAT(OwnerAround(inner, {"elsewhere", "a"}), IsEmpty());
}

TEST(Nesting, OfSeveralLocksEachHasALineAndALink) {
  const Environment inside = EnvironmentInside(
      {"HOLDFAST_TOKENS=1 old"}, {{{"", "b"}, "owner-1", 42}, {{"", "a key"}, "owner-1", 7}});
  EXPECT_THAT(inside, Contains("HOLDFAST_TOKEN=42"));
  EXPECT_THAT(inside, Contains("HOLDFAST_KEY=b"));
  EXPECT_THAT(inside, Contains("HOLDFAST_TOKENS=42 b\n7 a key"));
  EXPECT_THAT(inside, Not(Contains("HOLDFAST_TOKENS=1 old")));
  EXPECT_EQ(OwnerAround(inside, {"", "b"}), "owner-1");
  EXPECT_EQ(OwnerAround(inside, {"", "a key"}), "owner-1");
}

TEST(Nesting, AnOwnerSetByHandIsTakenForItsKeyOnly) {
  const Environment by_hand = {"HOLDFAST_KEY=a", "HOLDFAST_OWNER=somebody"};
  EXPECT_EQ(OwnerAround(by_hand, {"", "a"}), "somebody");
  EXPECT_THAT(OwnerAround(by_hand, {"", "b"}), IsEmpty());
  EXPECT_THAT(OwnerAround({}, {"", ""}), IsEmpty());
}

TEST(Quote, OnlyWhatAShellWouldChange) {
  EXPECT_EQ(Quote("jobs/daily:1"), "jobs/daily:1");
  EXPECT_EQ(Quote(""), "''");
  EXPECT_EQ(Quote("a b"), "'a b'");
  EXPECT_EQ(Quote("it's"), "'it'\\''s'");
  EXPECT_THAT(Quote("$(x)"), StartsWith("'"));
}

}  // namespace
}  // namespace holdfast::cli
