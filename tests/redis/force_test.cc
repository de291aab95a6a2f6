// SPDX-License-Identifier: Apache-2.0
//
// An operator, and programs that use the layout directly.
#include <gmock/gmock.h>

#include "tests/redis/redis_test.h"

namespace holdfast::testing {
namespace {

constexpr char kKey[] = "t:default:k";

class ForceTest : public RedisTest {
 protected:
  void SetUp() override {
    StartServer();
    if (server_ != nullptr) client_ = Up(NoGrace());
  }
  Forced Force(bool immediate, const std::string& hold_id = "") {
    return As<Forced>(client_->Ask(ForceOp{{"default", "k"}, hold_id, immediate}));
  }

  std::unique_ptr<StoreClient> client_;
};

TEST_F(ForceTest, AForeignLockIsOnlyEndedAtOnce) {
  server_->Run({"HSET", kKey, "foreigner", "2"});
  const Forced gently = Force(/*immediate=*/false);
  EXPECT_EQ(gently.holds, 0u);
  EXPECT_EQ(gently.over_in, absl::InfiniteDuration());
  ASSERT_EQ(gently.holders.size(), 1u);
  EXPECT_TRUE(gently.holders[0].foreign);
  EXPECT_EQ(Field(kKey, "foreigner"), "2");
  EXPECT_EQ(server_->Get({"PTTL", kKey}), "-1");
  EXPECT_EQ(Force(/*immediate=*/true).holds, 1u);
  EXPECT_EQ(server_->Get({"EXISTS", kKey}), "0");
  As<Granted>(client_->Ask(Acquire(Hold("k", "a"))));
}

TEST_F(ForceTest, AForeignLocksOwnExpiryIsTold) {
  server_->Run({"HINCRBY", kKey, "foreigner", "1"});
  server_->Run({"PEXPIRE", kKey, "20000"});
  const Forced forced = Force(/*immediate=*/false);
  EXPECT_GT(forced.over_in, absl::Seconds(15));
  EXPECT_LE(forced.over_in, absl::Seconds(20));
}

TEST_F(ForceTest, EndingOneHoldOfOursLeavesTheForeignPart) {
  const HoldRef a = Hold("k", "a");
  server_->Run({"HINCRBY", kKey, a.owner, "1"});
  server_->Run({"PEXPIRE", kKey, "25000"});
  As<Granted>(client_->Ask(Acquire(a, absl::Seconds(5))));
  EXPECT_EQ(Force(/*immediate=*/true, a.hold_id).holds, 1u);
  EXPECT_EQ(Field(kKey, a.owner), "1");
  As<Busy>(client_->Ask(Acquire(Hold("k", "b"))));
  EXPECT_EQ(Force(/*immediate=*/true).holds, 1u);
  EXPECT_EQ(KeysLeft(), 0);
}

TEST_F(ForceTest, SomethingThatIsNoLockIsNotTouched) {
  for (const auto& command : {std::vector<std::string>{"SET", kKey, "text"},
                              std::vector<std::string>{"HSET", kKey, "a", "not a number"}}) {
    server_->Run({"DEL", kKey});
    server_->Run(command);
    const auto failure = As<StoreFailure>(client_->Ask(ForceOp{{"default", "k"}, "", true}));
    EXPECT_EQ(failure.kind, StoreFailureKind::kWrongType);
    EXPECT_EQ(server_->Get({"EXISTS", kKey}), "1");
  }
}

}  // namespace
}  // namespace holdfast::testing
