// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/clock_watch.h"

#include <gtest/gtest.h>

namespace holdfast::redis {
namespace {

class ClockWatchTest : public ::testing::Test {
 protected:
  // An answer at boot time `at_ms` of a server whose clock is `ahead_ms` ahead.
  std::optional<absl::Duration> Observe(int64_t at_ms, int64_t ahead_ms,
                                        int64_t round_trip_ms = 2) {
    return watch_.Observe(at_ms + ahead_ms, At(at_ms - round_trip_ms / 2),
                          At(at_ms + round_trip_ms / 2));
  }
  static BootTime At(int64_t ms) { return BootTime::FromNanos(ms * 1'000'000); }

  ClockWatch watch_;
};

TEST_F(ClockWatchTest, AnySteadyOffsetIsFine) {
  for (int64_t at = 1000; at < 100'000; at += 100) EXPECT_FALSE(Observe(at, 1'700'000'000'000));
}

TEST_F(ClockWatchTest, JumpsAreNoticedOnceInBothDirections) {
  Observe(1000, 50'000);
  Observe(1100, 50'000);
  const auto forward = Observe(1200, 50'500);
  ASSERT_TRUE(forward.has_value());
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*forward), 500, 5);
  EXPECT_FALSE(Observe(1300, 50'500));
  const auto back = Observe(1400, 40'000);
  ASSERT_TRUE(back.has_value());
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*back), -10'500, 5);
}

TEST_F(ClockWatchTest, SmallJumpsAndSlowAnswersAreNoJump) {
  Observe(1000, 50'000);
  EXPECT_FALSE(Observe(1100, 50'190));
  EXPECT_FALSE(Observe(5000, 51'500, 4000)) << "the round trip leaves it open";
}

TEST_F(ClockWatchTest, SlowDriftIsFollowed) {
  for (int64_t i = 0; i < 1000; ++i) EXPECT_FALSE(Observe(1000 + i * 1000, 50'000 + i * 20));
}

TEST_F(ClockWatchTest, AnotherServerHasAnotherClock) {
  Observe(1000, 50'000);
  watch_.Reset();
  EXPECT_FALSE(Observe(1100, 90'000));
  EXPECT_TRUE(Observe(1200, 50'000).has_value());
}

}  // namespace
}  // namespace holdfast::redis
