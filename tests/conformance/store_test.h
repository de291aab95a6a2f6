// SPDX-License-Identifier: Apache-2.0
//
// The body of the conformance tests: a fixture over any store. To add a store,
// add a StoreKind to stores.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/test_loop.h"

namespace holdfast::testing {

// Keeps whatever a store needs (a server, a folder) and makes the store. Nothing
// is held in a fresh environment, and no grace period runs.
class StoreEnvironment {
 public:
  virtual ~StoreEnvironment() = default;
  virtual std::unique_ptr<Store> MakeStore(TestLoop* loop) = 0;
  // Whether several stores that it makes are daemons on the same data.
  virtual bool shared() const { return true; }
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreEnvironment>()> make;
};
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

std::vector<StoreKind> AllStoreKinds();

// A store may count in whole milliseconds, on a wall clock that is being corrected: the holder's
// safety margin, at least 10 ms, is for that.
inline constexpr absl::Duration kClockTolerance = absl::Milliseconds(5);

class StoreTest : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A hold of `session` by `owner` (spelt out to the length of one), with an id made of both.
  static HoldRef Hold(const std::string& key, const std::string& owner,
                      const std::string& session = "s1");

  AcquireOp Acquire(const HoldRef& hold) const;
  static ReleaseOp Release(const HoldRef& hold, ReleaseKind kind = ReleaseKind::kOne,
                           const std::string& op_id = "");

  // Asks, and fails the test where the answer is of another kind.
  template <typename T>
  T Expect(decltype(StoreRequest::op) op) {
    return As<T>(client_->Ask(std::move(op)));
  }
  template <typename T>
  T As(const Result& result) {
    EXPECT_TRUE(std::holds_alternative<T>(result)) << "the answer is of kind " << result.index();
    const auto* failure = std::get_if<StoreFailure>(&result);
    EXPECT_TRUE(failure == nullptr) << failure->message;
    return std::holds_alternative<T>(result) ? std::get<T>(result) : T();
  }

  // Asks again and again until the key is granted: for expiries.
  Granted AcquireWhenFree(const AcquireOp& op, absl::Duration limit);

  TestLoop loop_;
  std::unique_ptr<StoreEnvironment> environment_;
  std::unique_ptr<StoreClient> client_;
};

}  // namespace holdfast::testing
