// SPDX-License-Identifier: Apache-2.0
//
// What readers, permits and release delays look like in Redis.
#include <gmock/gmock.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/redis/redis_test.h"

namespace holdfast::testing {
namespace {

using ::testing::IsSupersetOf;

constexpr char kKey[] = "t:default:k";

class RedisModesTest : public RedisTest {
 protected:
  void SetUp() override {
    StartServer();
    if (server_ != nullptr) client_ = Up(NoGrace());
  }

  AcquireOp Read(const std::string& owner, absl::Duration lease = absl::Seconds(20)) {
    AcquireOp op = Acquire(Hold("k", owner), lease, "op-" + owner);
    op.mode = Mode::kShared;
    return op;
  }
  AcquireOp Permit(const std::string& owner, uint32_t limit) {
    AcquireOp op = Acquire(Hold("k", owner), absl::Seconds(20), "op-" + owner);
    op.mode = Mode::kPermit;
    op.limit = limit;
    return op;
  }
  int64_t Ttl() {
    int64_t ttl = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server_->Get({"PTTL", kKey}), &ttl));
    return ttl;
  }

  std::unique_ptr<StoreClient> client_;
};

TEST_F(RedisModesTest, ReadersAreOneHashOfOwnersToCounts) {
  const Granted granted = As<Granted>(client_->Ask(Read("a")));
  As<Granted>(client_->Ask(Read("b", absl::Seconds(10))));
  AcquireOp again = Read("b", absl::Seconds(10));
  again.op_id = "op-2";
  again.hold.session = "s2";
  again.hold.hold_id = "second";
  again.note = "note";
  As<Granted>(client_->Ask(again));
  const std::vector<std::string> fields = Fields(kKey);
  EXPECT_THAT(fields, IsSupersetOf(
                          {std::string("a-of-sixteen-bytes=1"), std::string("b-of-sixteen-bytes=2"),
                           std::string("#m=s"), absl::StrCat("#t=", granted.token),
                           std::string("#ohold-a-s1=op-a\x1f"), std::string("#nsecond=note")}));
  EXPECT_EQ(fields.size(), 2u + 2 + 3 * 2 + 1);
  EXPECT_GT(Ttl(), 15'000) << "the latest deadline";
  As<Released>(client_->Ask(Release(Hold("k", "a"))));
  EXPECT_EQ(Field(kKey, "a-of-sixteen-bytes"), "(nil)");
  As<Released>(client_->Ask(Release(Hold("k", "b"))));
  EXPECT_EQ(Field(kKey, "b-of-sixteen-bytes"), "1");
  EXPECT_TRUE(As<Released>(client_->Ask(Release(again.hold))).freed);
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(RedisModesTest, PermitsSayTheirLimit) {
  As<Granted>(client_->Ask(Permit("a", 7)));
  EXPECT_EQ(Field(kKey, "#m"), "p7");
  EXPECT_EQ(Field(kKey, "#t"), "(nil)");
  EXPECT_TRUE(As<Released>(client_->Ask(Release(Hold("k", "a"), ReleaseKind::kAll))).freed);
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(RedisModesTest, ReadersAndPermitsKeepForeignProgramsOut) {
  for (const AcquireOp& op : {Read("a"), Permit("a", 3)}) {
    As<Granted>(client_->Ask(op));
    EXPECT_EQ(server_->Get({"EXISTS", kKey}), "1");
    EXPECT_EQ(server_->Get({"HEXISTS", kKey, "foreigner"}), "0");
    As<Released>(client_->Ask(Release(op.hold)));
    EXPECT_EQ(server_->Get({"EXISTS", kKey}), "0");
  }
}

TEST_F(RedisModesTest, AForeignLockKeepsReadersAndPermitsOut) {
  server_->Run({"HINCRBY", kKey, "foreigner", "1"});
  server_->Run({"PEXPIRE", kKey, "20000"});
  EXPECT_TRUE(As<Busy>(client_->Ask(Read("a"))).holders.at(0).foreign);
  EXPECT_TRUE(As<Busy>(client_->Ask(Permit("a", 3))).holders.at(0).foreign);
  server_->Run({"DEL", kKey});
  As<Granted>(client_->Ask(Read("a")));
}

// A daemon that knows exclusive locks only says "no lock" instead of taking the reader for a
// writer.
TEST_F(RedisModesTest, TheirRecordsAreNotThoseOfExclusiveHolds) {
  As<Granted>(client_->Ask(Read("a")));
  EXPECT_EQ(Field(kKey, "#hhold-a-s1").substr(0, 2), "m1");
}

TEST_F(RedisModesTest, AnOwnerThatWasRemovedFromOutsideHoldsNothing) {
  As<Granted>(client_->Ask(Read("a")));
  As<Granted>(client_->Ask(Read("b")));
  server_->Run({"HDEL", kKey, "a-of-sixteen-bytes"});
  RenewOp renew{Hold("k", "a"), absl::Seconds(20)};
  for (const Mode hint : {Mode::kShared, Mode::kExclusive}) {
    renew.mode = hint;
    EXPECT_TRUE(As<HoldGone>(client_->Ask(renew)).held_by_other);
  }
  EXPECT_EQ(As<KeyReport>(client_->Ask(InspectOp{renew.hold.name})).holders.size(), 1u);
  EXPECT_TRUE(As<Released>(client_->Ask(Release(Hold("k", "b")))).freed);
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(RedisModesTest, RenewalsFindTheirHoldWithOrWithoutAHint) {
  AcquireOp brief = Read("a", absl::Seconds(2));
  brief.release_delay = absl::Seconds(5);
  As<Granted>(client_->Ask(brief));
  As<Granted>(client_->Ask(Read("b", absl::Seconds(1))));
  EXPECT_GT(Ttl(), 6'000);
  RenewOp renew{brief.hold, absl::Seconds(10)};
  for (const Mode hint : {Mode::kShared, Mode::kExclusive}) {
    renew.mode = hint;
    renew.lease += absl::Seconds(5);
    EXPECT_EQ(As<Renewed>(client_->Ask(renew)).lease_remaining, renew.lease);
    EXPECT_GT(absl::Milliseconds(Ttl()), renew.lease + absl::Seconds(4));
  }
  RenewOp exclusive{Hold("k2", "a"), absl::Seconds(9), Mode::kShared};  // a wrong hint
  As<Granted>(client_->Ask(Acquire(exclusive.hold, absl::Seconds(2))));
  EXPECT_EQ(As<Renewed>(client_->Ask(exclusive)).lease_remaining, exclusive.lease);
}

TEST_F(RedisModesTest, TheHashOutlivesTheLeaseByTheReleaseDelay) {
  AcquireOp op = Acquire(Hold("k", "a"), absl::Seconds(2), "op");
  op.release_delay = absl::Seconds(7);
  As<Granted>(client_->Ask(op));
  EXPECT_EQ(Field(kKey, "#d"), "7000");
  EXPECT_GT(Ttl(), 8'000);
  EXPECT_LE(Ttl(), 9'000);
  As<Renewed>(client_->Ask(RenewOp{op.hold, absl::Seconds(10)}));
  EXPECT_GT(Ttl(), 16'000);
  As<Released>(client_->Ask(Release(op.hold, ReleaseKind::kAll)));
  EXPECT_GT(Ttl(), 6'000);
  EXPECT_LE(Ttl(), 7'000);
  EXPECT_EQ(Fields(kKey).size(), 1u);
}

TEST_F(RedisModesTest, ReadersRenewAndReleaseWhenRedisIsFull) {
  for (const char* owner : {"a", "b"}) As<Granted>(client_->Ask(Read(owner)));
  AcquireOp again = Read("a");
  again.op_id = "again";
  As<Granted>(client_->Ask(again));
  server_->Run({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(As<StoreFailure>(client_->Ask(Read("c"))).kind, StoreFailureKind::kOutOfMemory);
  EXPECT_EQ(As<Busy>(client_->Ask(Acquire(Hold("k", "w")))).holders.size(), 2u);
  As<Renewed>(client_->Ask(RenewOp{Hold("k", "a"), absl::Seconds(25), Mode::kShared}));
  EXPECT_EQ(As<Released>(client_->Ask(Release(Hold("k", "a")))).hold_count, 1u);
  EXPECT_EQ(As<Released>(client_->Ask(Release(Hold("k", "a")))).hold_count, 0u);
  EXPECT_TRUE(As<Released>(client_->Ask(Release(Hold("k", "b")))).freed);
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(RedisModesTest, AReaderThatTakesAKeyFromAWriterLetsOtherDaemonsReadersIn) {
  auto other = Up(NoGrace());
  As<Granted>(client_->Ask(Acquire(Hold("k", "w"), absl::Seconds(20))));
  As<Subscribed>(other->Ask(SubscribeOp{{"default", "k"}}));
  AcquireOp theirs = Read("b");
  theirs.will_wait = true;
  As<Busy>(other->Ask(theirs));
  // Release and grant of this daemon's own reader go out as one step.
  const uint64_t released = client_->Submit(Release(Hold("k", "w")));
  AcquireOp ours = Read("a");
  ours.will_wait = true;
  const uint64_t granted = client_->Submit(ours);
  As<Released>(client_->Wait(released));
  As<Granted>(client_->Wait(granted));
  EXPECT_TRUE(other->WaitEvent(StoreEvent::Kind::kWake).has_value());
  As<Granted>(other->Ask(theirs));
}

}  // namespace
}  // namespace holdfast::testing
