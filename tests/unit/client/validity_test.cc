// SPDX-License-Identifier: Apache-2.0
#include "client/lib/validity.h"

#include <gtest/gtest.h>

#include "src/base/limits.h"

namespace holdfast::client {
namespace {

BootTime At(absl::Duration since_boot) { return BootTime() + since_boot; }

GrantTimes Granted(absl::Duration waited, absl::Duration lease,
                   std::optional<absl::Duration> max_hold = std::nullopt) {
  return {.waited = waited,
          .lease = lease,
          .max_hold_remaining = max_hold,
          .safety_margin = SafetyMargin(lease)};
}

TEST(HoldValidity, CountsFromTheSendTimeAndEndsAMarginEarly) {
  const HoldValidity hold(At(absl::Seconds(100)), Granted(absl::Seconds(5), absl::Seconds(30)));
  EXPECT_EQ(hold.until(), At(absl::Seconds(135) - absl::Milliseconds(610)));
}

TEST(HoldValidity, APongMovesItOnFromThePingsSendTime) {
  HoldValidity hold(At(absl::Seconds(100)), Granted(absl::ZeroDuration(), absl::Seconds(30)));
  hold.OnPong(At(absl::Seconds(110)), absl::Seconds(25));
  EXPECT_EQ(hold.until(), At(absl::Seconds(135) - absl::Milliseconds(610)));
}

TEST(HoldValidity, APongNeverMovesItBack) {
  HoldValidity hold(At(absl::Seconds(100)), Granted(absl::ZeroDuration(), absl::Seconds(30)));
  const BootTime before = hold.until();
  hold.OnPong(At(absl::Seconds(101)), absl::Seconds(1));
  EXPECT_EQ(hold.until(), before);
}

TEST(HoldValidity, NothingMovesItPastMaxHold) {
  HoldValidity hold(At(absl::Seconds(100)),
                    Granted(absl::Seconds(2), absl::Seconds(30), absl::Seconds(40)));
  hold.OnPong(At(absl::Seconds(130)), absl::Seconds(30));
  const BootTime end = At(absl::Seconds(142) - absl::Milliseconds(610));
  EXPECT_EQ(hold.until(), end);
  hold.OnGrantAgain(At(absl::Seconds(141)),
                    Granted(absl::ZeroDuration(), absl::Seconds(30), absl::Seconds(2)));
  EXPECT_EQ(hold.until(), end);
}

TEST(HoldValidity, AReentryExtendsTheLease) {
  HoldValidity hold(At(absl::Seconds(100)), Granted(absl::ZeroDuration(), absl::Seconds(10)));
  hold.OnGrantAgain(At(absl::Seconds(105)), Granted(absl::ZeroDuration(), absl::Seconds(30)));
  EXPECT_EQ(hold.until(), At(absl::Seconds(135) - absl::Milliseconds(610)));
  EXPECT_EQ(hold.lease(), absl::Seconds(30));
}

TEST(SessionValidity, LastsUntilTheTtlAfterTheLastAnsweredPing) {
  SessionValidity session(At(absl::Seconds(100)), absl::Seconds(10), absl::Milliseconds(610));
  EXPECT_EQ(session.until(), At(absl::Seconds(110) - absl::Milliseconds(610)));
  session.OnPong(At(absl::Seconds(103)));
  session.OnPong(At(absl::Seconds(101)));  // a late one
  EXPECT_EQ(session.until(), At(absl::Seconds(113) - absl::Milliseconds(610)));
}

TEST(SessionValidity, WithoutATtlTheStreamAloneStandsForIt) {
  SessionValidity session(At(absl::Seconds(100)), absl::ZeroDuration(), absl::Milliseconds(610));
  session.OnPong(At(absl::Seconds(103)));
  EXPECT_EQ(session.until(), BootTime::Infinite());
}

TEST(PingInterval, IsAThirdOfWhatRunsOutFirst) {
  EXPECT_EQ(PingInterval(absl::Seconds(9), std::nullopt), absl::Seconds(3));
  EXPECT_EQ(PingInterval(absl::Seconds(9), absl::Seconds(30)), absl::Seconds(3));
  EXPECT_EQ(PingInterval(absl::Seconds(9), absl::Seconds(3)), absl::Seconds(1));
  EXPECT_EQ(PingInterval(absl::ZeroDuration(), absl::Seconds(30)), absl::Seconds(10));
  EXPECT_EQ(PingInterval(absl::ZeroDuration(), std::nullopt), absl::InfiniteDuration());
  EXPECT_GT(PingInterval(absl::Seconds(9), absl::Milliseconds(1)), absl::Milliseconds(1));
}

}  // namespace
}  // namespace holdfast::client
