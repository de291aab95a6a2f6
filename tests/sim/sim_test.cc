// SPDX-License-Identifier: Apache-2.0
//
// Daemons on one store under random schedules: schedule.h says what happens in
// one, promises.h what must be true in all.
//
// A failure prints its seed: HOLDFAST_SIM_SEED=N runs that one alone, and tells its story.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/schedule.h"

namespace holdfast::sim {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

// Runs the seeds from 1 on, on all processors.
class Runs {
 public:
  explicit Runs(uint64_t seeds) : seeds_(seeds) {}

  void Go() {
    std::vector<std::thread> threads;
    const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < processors; ++i) threads.emplace_back([this] { RunSome(); });
    for (std::thread& thread : threads) thread.join();
  }

  // The lowest seed that fails; 0: none. Where one fails, higher ones may not have been run.
  uint64_t failed() const { return failed_; }
  const Tally& tally() const { return tally_; }

 private:
  void RunSome() {
    Tally tally;
    while (failed_ == 0) {
      const uint64_t seed = next_++;
      if (seed > seeds_) break;
      if (!Schedule(seed, &tally).Go().empty()) Fail(seed);
    }
    const std::lock_guard lock(mutex_);
    for (const TallyRow& row : kTallyRows) tally_.*row.count += tally.*row.count;
  }

  void Fail(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    if (failed_ == 0 || seed < failed_) failed_ = seed;
  }

  const uint64_t seeds_;
  std::atomic<uint64_t> next_ = 1;
  std::atomic<uint64_t> failed_ = 0;
  std::mutex mutex_;
  Tally tally_;
};

void RunOne(uint64_t seed) {
  Tally tally;
  const std::string problem = Schedule(seed, &tally, true).Go();
  EXPECT_TRUE(problem.empty()) << "seed " << seed << ": " << problem
                               << "again: HOLDFAST_SIM_SEED=" << seed
                               << " build/bin/tests/sim --gtest_filter=*Promise*";
}

TEST(Simulation, EveryPromiseHoldsUnderRandomSchedules) {
  if (const uint64_t only = FromEnvironment("HOLDFAST_SIM_SEED", 0); only != 0) return RunOne(only);
  const uint64_t seeds = FromEnvironment("HOLDFAST_SIM_SEEDS", HOLDFAST_SIM_DEFAULT_SEEDS);
  Runs runs(seeds);
  runs.Go();
  if (runs.failed() != 0) {
    RunOne(runs.failed());
    FAIL() << "(of " << seeds << " seeds)";
  }
  std::printf("%llu schedules:", static_cast<unsigned long long>(seeds));
  for (const TallyRow& row : kTallyRows) {
    const int64_t count = runs.tally().*row.count;
    std::printf(" %s %lld;", row.what, static_cast<long long>(count));
    if (seeds >= 1000) {
      EXPECT_GT(count, 0) << row.what;
    }
  }
  std::printf("\n");
}

// What a run of the seed came to, as one number.
uint64_t DigestOf(uint64_t seed) {
  Tally tally;
  Schedule schedule(seed, &tally);
  const std::string problem = schedule.Go();
  return problem.empty() ? schedule.digest() : 0;
}

TEST(Simulation, OneSeedGivesOneRunAloneOrAmongOthers) {
  constexpr uint64_t kSome = 200;
  std::vector<uint64_t> digests;
  for (uint64_t seed = 1; seed <= kSome; ++seed) digests.push_back(DigestOf(seed));
  for (uint64_t seed = kSome; seed >= 1; --seed) {
    ASSERT_EQ(DigestOf(seed), digests[seed - 1]) << "seed " << seed;
  }
}

TEST(SimulationDeathTest, OneSeedGivesOneRunInAnyProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the other process begins anew
  uint64_t digest = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) digest = digest * 31 + DigestOf(seed);
  EXPECT_EXIT(
      {
        std::fprintf(stderr, "digest %llu.", static_cast<unsigned long long>(digest));
        std::exit(0);
      },
      testing::ExitedWithCode(0), absl::StrCat("digest ", digest, "\\."));
}

}  // namespace
}  // namespace holdfast::sim
