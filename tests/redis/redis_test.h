// SPDX-License-Identifier: Apache-2.0
//
// A fixture with a Redis server of its own, which a test may harm as it likes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/store/redis/redis_store.h"
#include "tests/support/redis_server.h"
#include "tests/support/test_loop.h"

namespace holdfast::testing {

class RedisTest : public ::testing::Test {
 protected:
  // The options of a daemon on the test's server, with prefix "t:".
  RedisStoreOptions Options();
  RedisStoreOptions NoGrace();

  // A client that has started, and is up.
  std::unique_ptr<StoreClient> Up(const RedisStoreOptions& options);
  // A client that has started, whatever comes of it.
  std::unique_ptr<StoreClient> Begin(const RedisStoreOptions& options);

  void StartServer(std::vector<std::string> options = {});
  bool WaitForUptime(int seconds);

  static HoldRef Hold(const std::string& key, const std::string& owner,
                      const std::string& session = "s1");
  static AcquireOp Acquire(const HoldRef& hold, absl::Duration lease = absl::Milliseconds(250),
                           const std::string& op_id = "");
  static ReleaseOp Release(const HoldRef& hold, ReleaseKind kind = ReleaseKind::kOne,
                           const std::string& op_id = "");

  template <typename T>
  static T As(const Result& result) {
    EXPECT_TRUE(std::holds_alternative<T>(result)) << "the answer is of kind " << result.index();
    const auto* failure = std::get_if<StoreFailure>(&result);
    if (failure != nullptr && !std::is_same_v<T, StoreFailure>) ADD_FAILURE() << failure->message;
    return std::holds_alternative<T>(result) ? std::get<T>(result) : T();
  }

  // What stands in the lock's hash, "field=value" each; and how many keys there are beside the
  // state.
  std::vector<std::string> Fields(const std::string& redis_key);
  std::string Field(const std::string& redis_key, const std::string& field);
  int64_t KeysLeft();

  TestLoop loop_;
  std::unique_ptr<RedisServer> server_;
  std::vector<std::string> log_;  // warnings of the stores
};

}  // namespace holdfast::testing
