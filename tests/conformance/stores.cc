// SPDX-License-Identifier: Apache-2.0
//
// Which stores the conformance tests run against.
#include <atomic>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/store/memory/memory_store.h"
#include "src/store/redis/redis_store.h"
#include "tests/conformance/store_test.h"
#include "tests/support/redis_server.h"

namespace holdfast::testing {
namespace {

// One server for all tests; each has a prefix of its own.
class RedisEnvironment final : public StoreEnvironment {
 public:
  static std::unique_ptr<StoreEnvironment> Make() {
    if (Server() == nullptr) return nullptr;
    return std::make_unique<RedisEnvironment>();
  }

  std::unique_ptr<Store> MakeStore(TestLoop* loop) override {
    RedisStoreOptions options;
    options.url = Server()->url();
    options.prefix = prefix_;
    options.no_grace = true;
    options.random = [] { return uint64_t{0}; };
    options.clock = &loop->clock();
    return *MakeRedisStore(options, loop->uv());
  }

 private:
  static RedisServer* Server() {
    static const std::unique_ptr<RedisServer> server = RedisServer::Start();
    return server.get();
  }
  static int NextNumber() {
    static int next = 1;
    return next++;
  }

  const std::string prefix_ = absl::StrCat("test", NextNumber(), ":");
};

// A fresh state folder for each test.
class MemoryEnvironment final : public StoreEnvironment {
 public:
  MemoryEnvironment() {
    std::string name = absl::StrCat(::testing::TempDir(), "/holdfast-XXXXXX");
    root_ = mkdtemp(name.data());
  }
  ~MemoryEnvironment() override { std::filesystem::remove_all(root_); }

  bool shared() const override { return false; }
  std::unique_ptr<Store> MakeStore(TestLoop* loop) override {
    MemoryStoreOptions options;
    options.folder = absl::StrCat(root_, "/state");
    options.max_lease = limits::kDefaultMaxLease;
    options.clock = &loop->clock();
    options.wall_clock = &wall_clock_;
    return MakeMemoryStore(options, loop->uv());
  }

 private:
  const MachineWallClock wall_clock_;
  std::string root_;
};

}  // namespace

std::vector<StoreKind> AllStoreKinds() {
  return {{"Memory", std::make_unique<MemoryEnvironment>}, {"Redis", RedisEnvironment::Make}};
}

}  // namespace holdfast::testing
