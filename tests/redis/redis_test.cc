// SPDX-License-Identifier: Apache-2.0
#include "tests/redis/redis_test.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace holdfast::testing {

RedisStoreOptions RedisTest::Options() {
  RedisStoreOptions options;
  options.url = server_->url();
  options.prefix = "t:";
  options.max_lease = absl::Seconds(30);
  options.random = [] { return uint64_t{0}; };
  options.clock = &loop_.clock();
  options.log = [this](redis::LogLevel level, absl::string_view text) {
    if (level >= redis::LogLevel::kWarn) log_.emplace_back(text);
  };
  return options;
}

RedisStoreOptions RedisTest::NoGrace() {
  RedisStoreOptions options = Options();
  options.no_grace = true;
  return options;
}

std::unique_ptr<StoreClient> RedisTest::Begin(const RedisStoreOptions& options) {
  auto store = MakeRedisStore(options, loop_.uv());
  EXPECT_TRUE(store.ok()) << store.status();
  auto client = std::make_unique<StoreClient>(&loop_, *std::move(store));
  EXPECT_TRUE(client->Start().ok());
  return client;
}

std::unique_ptr<StoreClient> RedisTest::Up(const RedisStoreOptions& options) {
  auto client = Begin(options);
  EXPECT_TRUE(client->WaitEvent(StoreEvent::Kind::kUp).has_value())
      << (log_.empty() ? "" : log_.back());
  return client;
}

void RedisTest::StartServer(std::vector<std::string> options) {
  server_ = RedisServer::Start(std::move(options));
  ASSERT_NE(server_, nullptr) << "redis-server does not come up";
}

bool RedisTest::WaitForUptime(int seconds) {
  return loop_.RunUntil([&] {
    const std::string info = server_->Get({"INFO", "server"});
    const size_t at = info.find("uptime_in_seconds:");
    int uptime = 0;
    return at != std::string::npos &&
           absl::SimpleAtoi(info.substr(at + 18, info.find('\r', at) - at - 18), &uptime) &&
           uptime >= seconds;
  });
}

HoldRef RedisTest::Hold(const std::string& key, const std::string& owner,
                        const std::string& session) {
  HoldRef hold;
  hold.name = {"default", key};
  hold.owner = owner + "-of-sixteen-bytes";
  hold.hold_id = absl::StrCat("hold-", owner, "-", session);
  hold.session = session;
  return hold;
}

AcquireOp RedisTest::Acquire(const HoldRef& hold, absl::Duration lease, const std::string& op_id) {
  AcquireOp op;
  op.hold = hold;
  op.lease = lease;
  op.op_id = op_id;
  return op;
}

ReleaseOp RedisTest::Release(const HoldRef& hold, ReleaseKind kind, const std::string& op_id) {
  return {hold, kind, op_id};
}

std::vector<std::string> RedisTest::Fields(const std::string& redis_key) {
  const RawReply all = server_->Run({"HGETALL", redis_key});
  std::vector<std::string> fields;
  for (size_t i = 0; i + 1 < all.size(); i += 2) {
    fields.push_back(absl::StrCat(all[i], "=", all[i + 1]));
  }
  return fields;
}

std::string RedisTest::Field(const std::string& redis_key, const std::string& field) {
  return server_->Get({"HGET", redis_key, field});
}

int64_t RedisTest::KeysLeft() {
  int64_t keys = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server_->Get({"DBSIZE"}), &keys));
  return keys - 1;
}

}  // namespace holdfast::testing
