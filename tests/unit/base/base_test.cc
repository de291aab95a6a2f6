// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "src/base/clock.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast {
namespace {

TEST(Durations, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(*ParseDuration("250ms", "wait"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1m30s", "wait"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("0", "wait"), absl::ZeroDuration());
  for (const char* text : {"", "5", "-1s", "inf", "5 s", "5x"}) {
    const auto parsed = ParseDuration(text, "wait");
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(FieldOf(parsed.status()), "wait");
  }
}

TEST(Durations, AreWrittenSoThatTheyCanBeRead) {
  for (const absl::Duration duration :
       {absl::Milliseconds(250), absl::Seconds(5), absl::Minutes(3), absl::Hours(25)}) {
    EXPECT_EQ(*ParseDuration(DurationText(duration), "wait"), duration);
  }
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "never");
}

TEST(Status, CarriesWhatAProgramNeeds) {
  const absl::Status status = Fail(Reason::kNotOwner, "owner", "somebody else's");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), Reason::kNotOwner);
  EXPECT_EQ(FieldOf(status), "owner");
  EXPECT_FALSE(RetryAfterOf(status).has_value());
  const absl::Status grace = FailRetryable(Reason::kGracePeriod, "wait", absl::Seconds(3));
  EXPECT_EQ(RetryAfterOf(grace), absl::Seconds(3));
  EXPECT_EQ(ReasonOf(absl::UnknownError("from elsewhere")), Reason::kUnspecified);
}

TEST(Clock, SaturatesInsteadOfTurningOver) {
  const BootTime never = BootTime::Infinite();
  EXPECT_EQ(never - absl::Hours(1), never);
  EXPECT_EQ(BootTime::FromNanos(5) + absl::InfiniteDuration(), never);
  EXPECT_EQ(BootTime::FromNanos(5) - absl::Seconds(1), BootTime());
  EXPECT_EQ(never - BootTime(), absl::InfiniteDuration());
}

TEST(Clock, GoesOn) {
  const MachineClock clock;
  const BootTime before = clock.Now();
  EXPECT_GT(before, BootTime());
  EXPECT_GE(clock.Now(), before);
}

TEST(Limits, TheMarginIsAFiftiethAndALittle) {
  EXPECT_EQ(SafetyMargin(absl::Seconds(30)), absl::Milliseconds(610));
  EXPECT_EQ(SafetyMargin(absl::Milliseconds(100)), absl::Milliseconds(12));
}

}  // namespace
}  // namespace holdfast
