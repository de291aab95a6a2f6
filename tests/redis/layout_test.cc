// SPDX-License-Identifier: Apache-2.0
//
// What lies in Redis, and living with programs that use the layout directly.
#include <gmock/gmock.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/redis/redis_test.h"

namespace holdfast::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kKey[] = "t:default:k";

class LayoutTest : public RedisTest {
 protected:
  void SetUp() override {
    StartServer();
    if (server_ != nullptr) client_ = Up(NoGrace());
  }

  std::unique_ptr<StoreClient> client_;
};

TEST_F(LayoutTest, ALockIsAHashOfOwnerToCount) {
  AcquireOp op = Acquire(Hold("k", "a"), absl::Seconds(20), "op-1");
  op.note = "note";
  const Granted granted = As<Granted>(client_->Ask(op));
  op.op_id = "op-2";
  As<Granted>(client_->Ask(op));
  const std::string record = Field(kKey, "#hhold-a-s1");
  const std::vector<std::string> parts = absl::StrSplit(record, '\x1f');
  ASSERT_EQ(parts.size(), 7u);
  EXPECT_THAT(Fields(kKey),
              UnorderedElementsAre("a-of-sixteen-bytes=2", absl::StrCat("#t=", granted.token),
                                   absl::StrCat("#hhold-a-s1=", record),
                                   "#ohold-a-s1=op-1\x1fop-2\x1f", "#nhold-a-s1=note"));
  int64_t granted_ms = 0;
  int64_t lease_ms = 0;
  EXPECT_TRUE(absl::SimpleAtoi(parts[1], &granted_ms) && absl::SimpleAtoi(parts[2], &lease_ms));
  EXPECT_EQ(parts[0], "2");
  EXPECT_EQ(absl::StrCat(granted_ms + lease_ms), server_->Get({"PEXPIRETIME", kKey}));
  EXPECT_EQ(parts[3], "0");
  EXPECT_EQ(parts[4], "0");
  EXPECT_EQ(parts[5], "1");
  EXPECT_EQ(parts[6], "s1");
  EXPECT_EQ(Field("t:#state", "token"), absl::StrCat(granted.token));
  EXPECT_EQ(Field("t:#state", "format"), "1");
  EXPECT_EQ(Field("t:#state", "max_lease"), "30000");
}

TEST_F(LayoutTest, AnOrdinaryLockIsStoredCompactly) {
  AcquireOp op = Acquire(Hold("k", "a"), absl::Seconds(20), "a" + std::string(36, 'c'));
  op.hold.session = std::string(26, 's');
  op.hold.hold_id = std::string(26, 'h');
  op.max_hold = absl::Minutes(3);
  op.others_wait = true;
  As<Granted>(client_->Ask(op));
  EXPECT_EQ(server_->Get({"OBJECT", "ENCODING", kKey}), "listpack");
}

TEST_F(LayoutTest, KeysUsedOnceLeaveNothingBehind) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < 10'000; ++i) {
    const HoldRef hold = Hold(absl::StrCat("k", i), "a");
    ids.push_back(client_->Submit(Acquire(hold)));
    if (i % 10 == 0) {
      AcquireOp waiting = Acquire(Hold(absl::StrCat("k", i), "b"));
      waiting.will_wait = true;
      ids.push_back(client_->Submit(waiting));
    }
    if (i % 5 != 0) ids.push_back(client_->Submit(Release(hold)));
  }
  for (uint64_t id : ids) {
    if (std::holds_alternative<StoreFailure>(client_->Wait(id))) ADD_FAILURE();
  }
  EXPECT_TRUE(loop_.RunUntil([&] { return KeysLeft() == 0; })) << KeysLeft() << " keys are left";
  EXPECT_THAT(server_->Run({"KEYS", "*"}), ElementsAre("t:#state"));
}

TEST_F(LayoutTest, AForeignLockKeepsUsOutUntilItIsReleased) {
  server_->Run({"HINCRBY", kKey, "foreigner", "1"});
  server_->Run({"PEXPIRE", kKey, "20000"});
  AcquireOp op = Acquire(Hold("k", "a"));
  op.will_wait = true;
  const Busy busy = As<Busy>(client_->Ask(op));
  ASSERT_EQ(busy.holders.size(), 1u);
  EXPECT_TRUE(busy.holders[0].foreign);
  EXPECT_EQ(busy.holders[0].owner, "foreigner");
  EXPECT_EQ(busy.holders[0].count, 1u);
  EXPECT_EQ(busy.holders[0].held_for, absl::InfiniteDuration());
  EXPECT_GT(busy.free_in, absl::Seconds(15));
  EXPECT_LE(busy.free_in, absl::Seconds(20));
  As<HoldGone>(client_->Ask(Release(Hold("k", "a"))));
  As<HoldGone>(client_->Ask(RenewOp{Hold("k", "a"), absl::Seconds(30)}));
  EXPECT_EQ(Field(kKey, "foreigner"), "1");
  EXPECT_THAT(server_->Get({"PTTL", kKey}), ::testing::Not("-1"));
  server_->Run({"DEL", kKey});
  As<Granted>(client_->Ask(op));
}

TEST_F(LayoutTest, AForeignLockWithoutExpiryEndsOnlyByItsRelease) {
  server_->Run({"HSET", kKey, "foreigner", "2"});
  const Busy busy = As<Busy>(client_->Ask(Acquire(Hold("k", "a"))));
  ASSERT_EQ(busy.holders.size(), 1u);
  EXPECT_EQ(busy.free_in, absl::InfiniteDuration());
  EXPECT_EQ(busy.holders[0].expires_in, absl::InfiniteDuration());
  EXPECT_EQ(server_->Get({"PTTL", kKey}), "-1");
}

TEST_F(LayoutTest, AForeignLockThatExpiresLetsUsIn) {
  server_->Run({"HINCRBY", kKey, "foreigner", "1"});
  server_->Run({"PEXPIRE", kKey, "100"});
  Result result = client_->Ask(Acquire(Hold("k", "a")));
  EXPECT_TRUE(std::holds_alternative<Busy>(result));
  EXPECT_TRUE(loop_.RunUntil(
      [&] { return std::holds_alternative<Granted>(client_->Ask(Acquire(Hold("k", "a")))); }));
}

TEST_F(LayoutTest, OurLockKeepsForeignProgramsOut) {
  AcquireOp op = Acquire(Hold("k", "a"), absl::Seconds(20));
  op.min_hold = absl::Seconds(20);
  As<Granted>(client_->Ask(op));
  EXPECT_EQ(server_->Get({"EXISTS", kKey}), "1");
  EXPECT_EQ(server_->Get({"HEXISTS", kKey, "foreigner"}), "0");
  EXPECT_EQ(server_->Get({"HEXISTS", kKey, "a-of-sixteen-bytes"}), "1");
  EXPECT_FALSE(As<Released>(client_->Ask(Release(op.hold))).freed);
  EXPECT_EQ(server_->Get({"EXISTS", kKey}), "1") << "kept back";
  EXPECT_EQ(server_->Get({"HEXISTS", kKey, "a-of-sixteen-bytes"}), "0");
  EXPECT_EQ(Fields(kKey).size(), 1u);
}

TEST_F(LayoutTest, OneOwnerMayHoldThroughBoth) {
  const HoldRef a = Hold("k", "a");
  server_->Run({"HINCRBY", kKey, a.owner, "1"});
  server_->Run({"PEXPIRE", kKey, "25000"});
  const Granted granted = As<Granted>(client_->Ask(Acquire(a, absl::Seconds(5))));
  EXPECT_EQ(granted.owner_count, 2u);
  EXPECT_EQ(granted.hold_count, 1u);
  EXPECT_GT(granted.token, 0);
  EXPECT_EQ(Field(kKey, a.owner), "2");
  int ttl = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server_->Get({"PTTL", kKey}), &ttl) && ttl > 20'000)
      << "the foreign part was cut short: " << ttl;
  const Released released = As<Released>(client_->Ask(Release(a, ReleaseKind::kAll)));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.owner_count, 1u);
  EXPECT_EQ(Field(kKey, a.owner), "1");
  As<Busy>(client_->Ask(Acquire(Hold("k", "b"))));
}

TEST_F(LayoutTest, AForeignProgramMayJoinOurHold) {
  const HoldRef a = Hold("k", "a");
  As<Granted>(client_->Ask(Acquire(a, absl::Seconds(20))));
  server_->Run({"HINCRBY", kKey, a.owner, "1"});
  server_->Run({"PEXPIRE", kKey, "1000"});
  As<Renewed>(client_->Ask(RenewOp{a, absl::Seconds(20)}));
  int ttl = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server_->Get({"PTTL", kKey}), &ttl) && ttl > 15'000) << ttl;
  const Released released = As<Released>(client_->Ask(Release(a)));
  EXPECT_FALSE(released.freed);
  EXPECT_EQ(released.owner_count, 1u);
  EXPECT_EQ(Field(kKey, a.owner), "1");
}

TEST_F(LayoutTest, AHoldWhoseKeyWasDeletedOutsideIsGone) {
  const HoldRef a = Hold("k", "a");
  As<Granted>(client_->Ask(Acquire(a)));
  server_->Run({"DEL", kKey});
  EXPECT_FALSE(As<HoldGone>(client_->Ask(RenewOp{a, absl::Seconds(5)})).held_by_other);
}

TEST_F(LayoutTest, WhatIsNoLockIsNotTouched) {
  const auto untouched = [&](const std::vector<std::string>& look) {
    const RawReply before = server_->Run(look);
    for (int i = 0; i < 4; ++i) {
      const HoldRef a = Hold("k", "a");
      AcquireOp op = Acquire(a);
      op.will_wait = true;
      const Result result = i == 0   ? client_->Ask(op)
                            : i == 1 ? client_->Ask(Release(a, ReleaseKind::kAll))
                            : i == 2 ? client_->Ask(RenewOp{a, absl::Seconds(5)})
                                     : client_->Ask(InspectOp{a.name});
      EXPECT_EQ(As<StoreFailure>(result).kind, StoreFailureKind::kWrongType) << look[0] << i;
    }
    EXPECT_THAT(As<ListPage>(client_->Ask(ListOp{"default", "k", ""})).keys, IsEmpty());
    EXPECT_EQ(server_->Run(look), before);
    EXPECT_EQ(server_->Get({"PTTL", kKey}), "-1");
    server_->Run({"DEL", kKey});
  };
  server_->Run({"SET", kKey, "a string"});
  untouched({"GET", kKey});
  server_->Run({"RPUSH", kKey, "1", "2"});
  untouched({"LRANGE", kKey, "0", "-1"});
  server_->Run({"HSET", kKey, "name", "Ada"});
  untouched({"HGETALL", kKey});
  server_->Run({"HSET", kKey, "x", "1", "y", "1"});
  untouched({"HGETALL", kKey});
}

TEST_F(LayoutTest, AWrongTypeAmongRenewalsStopsNoOther) {
  server_->Run({"SET", "t:default:odd", "x"});
  As<Granted>(client_->Ask(Acquire(Hold("k", "a"))));
  const uint64_t odd = client_->Submit(RenewOp{Hold("odd", "a"), absl::Seconds(5)});
  const uint64_t fine = client_->Submit(RenewOp{Hold("k", "a"), absl::Seconds(5)});
  EXPECT_EQ(As<StoreFailure>(client_->Wait(odd)).kind, StoreFailureKind::kWrongType);
  As<Renewed>(client_->Wait(fine));
}

TEST_F(LayoutTest, RenewAndReleaseWorkWhenRedisIsFull) {
  const HoldRef a = Hold("k", "a");
  AcquireOp op = Acquire(a, absl::Seconds(10));
  op.note = "note";
  for (int i = 0; i < 3; ++i) As<Granted>(client_->Ask(op));
  As<Granted>(client_->Ask(Acquire(Hold("k2", "a"), absl::Seconds(10))));
  server_->Run({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(As<StoreFailure>(client_->Ask(Acquire(Hold("k3", "a")))).kind,
            StoreFailureKind::kOutOfMemory);
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  EXPECT_EQ(As<Busy>(client_->Ask(waiting)).holders.size(), 1u);
  EXPECT_EQ(As<Renewed>(client_->Ask(RenewOp{a, absl::Seconds(20)})).lease_remaining,
            absl::Seconds(20));
  As<Renewed>(client_->Ask(RenewOp{Hold("k2", "a"), absl::Seconds(20)}));
  EXPECT_EQ(As<Released>(client_->Ask(Release(a, ReleaseKind::kOne, "op"))).hold_count, 2u);
  EXPECT_TRUE(As<Released>(client_->Ask(Release(a, ReleaseKind::kAll))).freed);
  EXPECT_TRUE(As<Released>(client_->Ask(Release(Hold("k2", "a")))).freed);
  As<KeyReport>(client_->Ask(InspectOp{a.name}));
  EXPECT_EQ(KeysLeft(), 0);
  server_->Run({"CONFIG", "SET", "maxmemory", "0"});
  As<Granted>(client_->Ask(Acquire(Hold("k3", "a"))));
}

TEST_F(LayoutTest, AnEmptyPrefixMeansPlainKeys) {
  RedisStoreOptions options = NoGrace();
  options.prefix = "";
  auto plain = Up(options);
  const HoldRef a = Hold("k", "a");
  As<Granted>(plain->Ask(Acquire(a, absl::Seconds(20))));
  EXPECT_EQ(Field("k", a.owner), "1");
  EXPECT_EQ(server_->Get({"EXISTS", "#holdfast:state"}), "1");
  EXPECT_EQ(As<StoreFailure>(plain->Ask(Acquire(Hold("#k", "a")))).kind, StoreFailureKind::kOther);
  HoldRef other = a;
  other.name.ns = "other";
  EXPECT_EQ(As<StoreFailure>(plain->Ask(Acquire(other))).kind, StoreFailureKind::kOther);
  const ListPage page = As<ListPage>(plain->Ask(ListOp{"default", "", ""}));
  ASSERT_EQ(page.keys.size(), 1u);
  EXPECT_EQ(page.keys[0].name.key, "k");
  As<Subscribed>(plain->Ask(SubscribeOp{a.name}));
  AcquireOp waiting = Acquire(Hold("k", "b"));
  waiting.will_wait = true;
  As<Busy>(plain->Ask(waiting));
  As<Released>(plain->Ask(Release(a)));
  EXPECT_TRUE(plain->WaitEvent(StoreEvent::Kind::kWake).has_value());
}

TEST_F(LayoutTest, ALeaseLongerThanTheLongestIsRefused) {
  EXPECT_EQ(As<StoreFailure>(client_->Ask(Acquire(Hold("k", "a"), absl::Seconds(31)))).kind,
            StoreFailureKind::kOther);
}

}  // namespace
}  // namespace holdfast::testing
