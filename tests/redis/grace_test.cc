// SPDX-License-Identifier: Apache-2.0
//
// Incarnations: when nothing is granted, and when it is again.
#include <gmock/gmock.h>

#include "tests/redis/redis_test.h"

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;
using Kind = StoreEvent::Kind;

class GraceTest : public RedisTest {
 protected:
  void SetUp() override { StartServer(); }

  // What the marker's rules say to a daemon that starts now.
  absl::Duration GraceOf(StoreClient& client) {
    const Result result = client.Ask(Acquire(Hold("probe", "a")));
    if (std::holds_alternative<Granted>(result)) return absl::ZeroDuration();
    return As<InGrace>(result).remaining;
  }

  RedisStoreOptions Short(bool no_grace) {
    RedisStoreOptions options = Options();
    options.max_lease = absl::Milliseconds(500);
    options.no_grace = no_grace;
    return options;
  }
};

TEST_F(GraceTest, AYoungServerWithoutMarkerIsInGraceForWhatRemains) {
  auto client = Up(Options());
  const auto grace = client->WaitEvent(Kind::kGrace);
  ASSERT_TRUE(grace.has_value());
  EXPECT_GT(grace->remaining, absl::Seconds(20));
  EXPECT_LE(grace->remaining, absl::Seconds(30));
  const Result result = client->Ask(Acquire(Hold("k", "a")));
  EXPECT_GT(As<InGrace>(result).remaining, absl::Seconds(20));
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(GraceTest, AnOldServerThatNeverKnewHoldfastHasNone) {
  ASSERT_TRUE(WaitForUptime(2));
  auto client = Up(Short(false));
  EXPECT_EQ(GraceOf(*client), absl::ZeroDuration());
}

TEST_F(GraceTest, AnOldServerWhoseStatisticsWereResetIsNotTrusted) {
  ASSERT_TRUE(WaitForUptime(2));
  server_->Run({"CONFIG", "RESETSTAT"});
  auto client = Up(Short(false));
  EXPECT_GT(GraceOf(*client), absl::Milliseconds(200));
}

TEST_F(GraceTest, AnOldServerThatWasFlushedIsNotTrusted) {
  ASSERT_TRUE(WaitForUptime(2));
  server_->Run({"FLUSHDB"});
  auto client = Up(Short(false));
  EXPECT_GT(GraceOf(*client), absl::Milliseconds(200));
}

TEST_F(GraceTest, ALossUnnoticedByStatisticsIsNoticedByADaemonThatKnewTheMarker) {
  ASSERT_TRUE(WaitForUptime(2));
  auto client = Up(Short(false));
  server_->Run({"DEL", "t:#state"});
  server_->Run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(client->WaitEvent(Kind::kDown).has_value());
  ASSERT_TRUE(client->WaitEvent(Kind::kUp).has_value());
  EXPECT_GT(GraceOf(*client), absl::ZeroDuration());
}

TEST_F(GraceTest, NoGraceSkipsAndEndsIt) {
  auto first = Up(Options());
  EXPECT_GT(GraceOf(*first), absl::ZeroDuration());
  auto second = Up(NoGrace());
  EXPECT_EQ(GraceOf(*second), absl::ZeroDuration());
  EXPECT_EQ(GraceOf(*first), absl::ZeroDuration());
}

TEST_F(GraceTest, ASecondDaemonFindsTheMarkerAndOpensNothing) {
  auto first = Up(NoGrace());
  auto second = Up(Options());
  EXPECT_EQ(GraceOf(*second), absl::ZeroDuration());
  As<Released>(second->Ask(Release(Hold("probe", "a"))));
  EXPECT_EQ(GraceOf(*first), absl::ZeroDuration());
}

TEST_F(GraceTest, ARestartedServerGrantsNothingUntilEveryLeaseIsOver) {
  RedisStoreOptions options = Short(true);
  auto client = Up(options);
  const Granted before = As<Granted>(client->Ask(Acquire(Hold("k", "a"))));
  ASSERT_TRUE(server_->RestartEmpty());
  ASSERT_TRUE(client->WaitEvent(Kind::kDown).has_value());
  ASSERT_TRUE(client->WaitEvent(Kind::kUp).has_value());
  const auto grace = client->WaitEvent(Kind::kGrace);
  ASSERT_TRUE(grace.has_value());
  EXPECT_GT(grace->remaining, absl::Milliseconds(200));
  As<InGrace>(client->Ask(Acquire(Hold("k", "b"))));
  As<HoldGone>(client->Ask(RenewOp{Hold("k", "a"), absl::Milliseconds(250)}));
  const auto end = client->WaitEvent(Kind::kGrace);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->remaining, absl::ZeroDuration());
  const Granted after = As<Granted>(client->Ask(Acquire(Hold("k", "b"))));
  EXPECT_GT(after.token, before.token);
}

TEST_F(GraceTest, AFlushOnAnOpenConnectionIsNotMissed) {
  auto client = Up(Short(true));
  auto other = Up(Short(false));
  const Granted before = As<Granted>(client->Ask(Acquire(Hold("k", "a"))));
  client->ForgetEvents();
  other->ForgetEvents();
  server_->Run({"FLUSHALL"});
  const uint64_t acquired = client->Submit(Acquire(Hold("k", "b")));
  const uint64_t renewed = client->Submit(RenewOp{Hold("k", "a"), absl::Milliseconds(250)});
  const uint64_t released = client->Submit(Release(Hold("k", "a")));
  EXPECT_GT(As<InGrace>(client->Wait(acquired)).remaining, absl::Milliseconds(200));
  As<HoldGone>(client->Wait(renewed));
  As<HoldGone>(client->Wait(released));
  As<InGrace>(other->Ask(Acquire(Hold("k", "c"))));
  const auto grace = client->WaitEvent(Kind::kGrace);
  ASSERT_TRUE(grace.has_value());
  EXPECT_GT(grace->remaining, absl::Milliseconds(200));
  const auto end = client->WaitEvent(Kind::kGrace);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->remaining, absl::ZeroDuration());
  EXPECT_GT(As<Granted>(client->Ask(Acquire(Hold("k", "b")))).token, before.token);
  EXPECT_FALSE(client->HasEvent(Kind::kDown));
  EXPECT_FALSE(other->HasEvent(Kind::kDown));
}

TEST_F(GraceTest, AReleaseAfterAFlushIsTriedAgainAndOpensGraceToo) {
  auto client = Up(Short(true));
  As<Granted>(client->Ask(Acquire(Hold("k", "a"))));
  client->ForgetEvents();
  server_->Run({"FLUSHALL"});
  As<HoldGone>(client->Ask(Release(Hold("k", "a"))));
  EXPECT_TRUE(client->HasEvent(Kind::kGrace));
  As<InGrace>(client->Ask(Acquire(Hold("k", "b"))));
}

TEST_F(GraceTest, WhatIsHeldIsRenewedAndReleasedInGraceButGrantedToNobody) {
  auto client = Up(NoGrace());
  const HoldRef a = Hold("k", "a");
  As<Granted>(client->Ask(Acquire(a, absl::Seconds(20))));
  // Another life wrote its marker over the same data, as a failover does.
  server_->Run({"HSET", "t:#state", "inc", "another:life"});
  As<InGrace>(client->Ask(Acquire(Hold("k2", "b"))));
  // The data may be older than a release by this very owner.
  As<InGrace>(client->Ask(Acquire(a)));
  EXPECT_EQ(As<Renewed>(client->Ask(RenewOp{a, absl::Seconds(30)})).lease_remaining,
            absl::Seconds(30));
  EXPECT_TRUE(As<Released>(client->Ask(Release(a, ReleaseKind::kAll))).freed);
  As<InGrace>(client->Ask(Acquire(a)));
}

TEST_F(GraceTest, TheLongestLeaseEverSeenDecides) {
  auto long_leases = Up(NoGrace());
  auto short_leases = Up(Short(false));
  server_->Run({"HSET", "t:#state", "inc", "another:life"});
  EXPECT_GT(As<InGrace>(short_leases->Ask(Acquire(Hold("k", "a")))).remaining, absl::Seconds(20));
}

TEST_F(GraceTest, DataOfANewerFormatIsRefused) {
  server_->Run({"HSET", "t:#state", "format", "2", "inc", "x:y", "grace", "0", "token", "7"});
  auto client = Begin(NoGrace());
  const auto down = client->WaitEvent(Kind::kDown);
  ASSERT_TRUE(down.has_value());
  EXPECT_THAT(down->detail, HasSubstr("format 2"));
  loop_.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(client->HasEvent(Kind::kUp));
  EXPECT_EQ(Field("t:#state", "inc"), "x:y");
  EXPECT_EQ(As<StoreFailure>(client->Ask(Acquire(Hold("k", "a")))).kind,
            StoreFailureKind::kUnreachable);
}

TEST_F(GraceTest, AReplicaIsRefusedUntilItIsPromoted) {
  server_->Run({"REPLICAOF", "127.0.0.1", "1"});
  auto client = Begin(Options());
  const auto down = client->WaitEvent(Kind::kDown);
  ASSERT_TRUE(down.has_value());
  EXPECT_THAT(down->detail, HasSubstr("replica"));
  server_->Run({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(client->WaitEvent(Kind::kUp).has_value());
  EXPECT_GT(GraceOf(*client), absl::Seconds(20));
}

TEST_F(GraceTest, AServerDemotedUnderAnOpenConnectionIsLeft) {
  auto client = Up(NoGrace());
  As<Granted>(client->Ask(Acquire(Hold("k", "a"))));
  server_->Run({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_EQ(As<StoreFailure>(client->Ask(Acquire(Hold("k2", "a")))).kind,
            StoreFailureKind::kUnreachable);
  ASSERT_TRUE(client->WaitEvent(Kind::kDown).has_value());
  server_->Run({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(client->WaitEvent(Kind::kUp).has_value());
  As<InGrace>(client->Ask(Acquire(Hold("k2", "a"))));  // the replication id is another one
}

}  // namespace
}  // namespace holdfast::testing
