// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/hold_ledger.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"

namespace holdfast::redis {
namespace {

class Ledger : public ::testing::Test {
 protected:
  HeardNews Grant(const std::string& key, const std::string& id, bool was_free = true) {
    HeardNews heard;
    heard.news.name = {"default", key};
    heard.news.hold_id = id;
    heard.news.lease = absl::Seconds(10);
    heard.key_was_free = was_free;
    return heard;
  }
  HeardNews End(const std::string& key, const std::string& id) {
    HeardNews heard = Grant(key, id);
    heard.news.kind = KeyNews::Kind::kReleased;
    return heard;
  }
  KeyReport Report(const std::string& key, const std::vector<std::string>& ids) {
    KeyReport report;
    report.name = {"default", key};
    for (const std::string& id : ids) {
      HolderState holder;
      holder.hold_id = id;
      holder.expires_in = absl::Seconds(10);
      report.holders.push_back(holder);
      report.holds++;
    }
    return report;
  }
  HoldLedger::Due Pass(absl::Duration span) {
    now_ = now_ + span;
    return ledger_.TakeDue(now_, 100);
  }

  HoldLedger ledger_;
  BootTime now_ = BootTime::FromNanos(1'000'000'000'000);
};

TEST_F(Ledger, AHoldIsLookedForWhenItShouldBeOver) {
  ledger_.Hear(Grant("k", "h"), now_);
  EXPECT_TRUE(Pass(absl::Seconds(9)).look_at.empty());
  const HoldLedger::Due due = Pass(absl::Seconds(2));
  ASSERT_EQ(due.look_at.size(), 1u);
  EXPECT_EQ(due.look_at[0].key, "k");
  EXPECT_TRUE(due.lost.empty());
}

TEST_F(Ledger, OneThatIsGoneIsLostUnlessItsNewsIsOnItsWay) {
  for (const bool news : {false, true}) {
    ledger_.Hear(Grant("k", "h"), now_);
    Pass(absl::Seconds(11));
    ledger_.See(Report("k", {}), now_);
    EXPECT_TRUE(Pass(absl::Milliseconds(100)).lost.empty());
    if (news) ledger_.Hear(End("k", "h"), now_);
    const HoldLedger::Due due = Pass(absl::Seconds(1));
    ASSERT_EQ(due.lost.size(), news ? 0u : 1u);
    if (!news) {
      EXPECT_EQ(due.lost[0].hold_id, "h");
      EXPECT_EQ(due.lost[0].kind, KeyNews::Kind::kLost);
      EXPECT_EQ(due.lost[0].reason, LossReason::kLeaseExpired);
    }
    EXPECT_TRUE(ledger_.NextDue().is_infinite());
  }
}

TEST_F(Ledger, OneThatWasRenewedIsLookedForLater) {
  ledger_.Hear(Grant("k", "h"), now_);
  Pass(absl::Seconds(11));
  ledger_.See(Report("k", {"h"}), now_);
  EXPECT_TRUE(Pass(absl::Seconds(9)).look_at.empty());
  EXPECT_EQ(Pass(absl::Seconds(2)).look_at.size(), 1u);
}

TEST_F(Ledger, ALookThatIsNotAnsweredIsRepeated) {
  ledger_.Hear(Grant("k", "h"), now_);
  EXPECT_EQ(Pass(absl::Seconds(11)).look_at.size(), 1u);
  EXPECT_EQ(Pass(absl::Seconds(3)).look_at.size(), 1u);
}

TEST_F(Ledger, AGrantOfAFreeKeyTellsThatWhoeverHadItIsGone) {
  ledger_.Hear(Grant("k", "h1"), now_);
  EXPECT_TRUE(ledger_.Hear(Grant("k", "h2", /*was_free=*/false), now_).empty()) << "beside it";
  EXPECT_TRUE(ledger_.Hear(Grant("other", "h3"), now_).empty());
  const std::vector<KeyNews> lost = ledger_.Hear(Grant("k", "h4"), now_);
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].hold_id, "h1");
  EXPECT_EQ(lost[1].hold_id, "h2");
  EXPECT_TRUE(ledger_.Hear(Grant("k", "h4"), now_).empty()) << "told again";
}

TEST_F(Ledger, WhatIsThereAlreadyIsKnownFromALook) {
  ledger_.See(Report("k", {"a", "b"}), now_);
  EXPECT_EQ(Pass(absl::Seconds(11)).look_at.size(), 1u) << "one look for both";
  ledger_.See(Report("k", {"b"}), now_);
  EXPECT_EQ(Pass(absl::Seconds(1)).lost.size(), 1u);
}

TEST_F(Ledger, AReportThatLeavesSomeOutSaysNothingOfThem) {
  ledger_.See(Report("k", {"a"}), now_);
  KeyReport part = Report("k", {"b"});
  part.holds = 20;
  ledger_.See(part, now_);
  EXPECT_TRUE(Pass(absl::Seconds(1)).lost.empty());
}

TEST_F(Ledger, ItIsBounded) {
  for (size_t i = 0; i < limits::kTrackedHolds + 10; ++i) {
    ledger_.Hear(Grant("k", absl::StrCat("h", i), /*was_free=*/false), now_);
  }
  EXPECT_TRUE(ledger_.full());
  ledger_.Hear(End("k", "h0"), now_);
  EXPECT_FALSE(ledger_.full());
}

}  // namespace
}  // namespace holdfast::redis
