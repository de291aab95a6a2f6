// SPDX-License-Identifier: Apache-2.0
#include "client/lib/hold_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/lib/convert.h"
#include "src/base/limits.h"

namespace holdfast::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kMargin = absl::Milliseconds(610);  // of 30 s

BootTime At(absl::Duration since_boot) { return BootTime() + since_boot; }

v1::Grant GrantOf(const std::string& hold_id, absl::Duration lease = absl::Seconds(30)) {
  v1::Grant grant;
  grant.set_hold_id(hold_id);
  grant.set_key("key");
  grant.set_owner("owner");
  *grant.mutable_lease() = ToMessage(lease);
  *grant.mutable_safety_margin() = ToMessage(SafetyMargin(lease));
  return grant;
}

class HoldBookTest : public ::testing::Test {
 protected:
  // Opened at 100 s with a ttl of 10 s.
  HoldBook book_{SessionValidity(At(absl::Seconds(100)), absl::Seconds(10), kMargin)};
};

TEST_F(HoldBookTest, NoHoldOutlivesTheSession) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("h"), At(absl::Seconds(101)));
  const BootTime end = At(absl::Seconds(110) - kMargin);
  EXPECT_EQ(book_.ValidUntil("h", At(absl::Seconds(102))), end);
  EXPECT_EQ(book_.NextDeadline(), end);
  EXPECT_TRUE(book_.IsHeld("h", end - absl::Nanoseconds(1)));
  EXPECT_FALSE(book_.IsHeld("h", end));
  EXPECT_EQ(book_.LossOf("h", end)->reason, v1::LOSS_REASON_SESSION_CLOSED);
  EXPECT_FALSE(book_.LossOf("h", end)->told);
  EXPECT_THAT(book_.TakeLost(), ElementsAre("h"));
}

TEST_F(HoldBookTest, PongsKeepSessionAndHoldsAlive) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("h"), At(absl::Seconds(101)));
  for (int s = 103; s <= 190; s += 3) {
    book_.OnPong(At(absl::Seconds(s)), absl::Seconds(20), At(absl::Seconds(s + 1)));
  }
  EXPECT_TRUE(book_.IsHeld("h", At(absl::Seconds(195))));
  EXPECT_THAT(book_.TakeLost(), IsEmpty());
}

TEST_F(HoldBookTest, APongAfterTheEndDoesNotBringAHoldBack) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("h"), At(absl::Seconds(101)));
  // The program was stopped; the pong of a ping from before waits for it.
  book_.OnPong(At(absl::Seconds(103)), absl::Seconds(30), At(absl::Seconds(111)));
  EXPECT_FALSE(book_.IsHeld("h", At(absl::Seconds(111))));
  EXPECT_TRUE(book_.session_over());
}

TEST_F(HoldBookTest, AGrantThatWasOnItsWayTooLongIsLostAtOnce) {
  book_.OnPong(At(absl::Seconds(109)), std::nullopt, At(absl::Seconds(109)));
  book_.OnGrant(At(absl::Seconds(105)), GrantOf("h", absl::Seconds(1)), At(absl::Seconds(110)));
  EXPECT_FALSE(book_.IsHeld("h", At(absl::Seconds(110))));
  EXPECT_THAT(book_.TakeLost(), ElementsAre("h"));
}

TEST_F(HoldBookTest, TheDaemonsWordOutlivesNothing) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("h"), At(absl::Seconds(101)));
  book_.OnLost("h", v1::LOSS_REASON_FORCED);
  book_.OnLost("unknown", v1::LOSS_REASON_FORCED);
  EXPECT_FALSE(book_.IsHeld("h", At(absl::Seconds(101))));
  EXPECT_TRUE(book_.LossOf("h", At(absl::Seconds(101)))->told);
  book_.OnPong(At(absl::Seconds(103)), absl::Seconds(30), At(absl::Seconds(103)));
  EXPECT_EQ(book_.LossOf("h", At(absl::Seconds(120)))->reason, v1::LOSS_REASON_FORCED);
}

TEST_F(HoldBookTest, WhenTheDaemonEndsTheSessionAllIsLost) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("a"), At(absl::Seconds(101)));
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("b"), At(absl::Seconds(101)));
  book_.OnSessionOver();
  EXPECT_THAT(book_.TakeLost(), ElementsAre("a", "b"));
  EXPECT_EQ(book_.NextDeadline(), BootTime::Infinite());
}

TEST_F(HoldBookTest, AReentryNeedsAsManyReleases) {
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("h"), At(absl::Seconds(101)));
  book_.OnGrant(At(absl::Seconds(102)), GrantOf("h"), At(absl::Seconds(102)));
  book_.OnRelease("h");
  EXPECT_TRUE(book_.IsHeld("h", At(absl::Seconds(103))));
  book_.OnRelease("h");
  EXPECT_FALSE(book_.IsHeld("h", At(absl::Seconds(103))));
  EXPECT_FALSE(book_.LossOf("h", At(absl::Seconds(103))).has_value());
}

TEST_F(HoldBookTest, TheShortestLeaseIsThatOfHoldsThatLive) {
  EXPECT_EQ(book_.ShortestLease(), std::nullopt);
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("a"), At(absl::Seconds(101)));
  book_.OnGrant(At(absl::Seconds(101)), GrantOf("b", absl::Seconds(3)), At(absl::Seconds(101)));
  EXPECT_EQ(book_.ShortestLease(), absl::Seconds(3));
  book_.OnLost("b", v1::LOSS_REASON_FORCED);
  EXPECT_EQ(book_.ShortestLease(), absl::Seconds(30));
}

}  // namespace
}  // namespace holdfast::client
