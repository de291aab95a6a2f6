// SPDX-License-Identifier: Apache-2.0
//
// Keys that are kept back after an abnormal end, as the configuration says.
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

EngineOptions Options() {
  EngineOptions options;
  options.release_delays = {{"default", "", absl::Seconds(1)},
                            {"default", "k", absl::Seconds(5)},
                            {"other", "k", absl::Seconds(9)}};
  return options;
}

class ReleaseDelay : public ::testing::Test {
 protected:
  ReleaseDelay() : rig_(Options()) {}

  // A waiter for the key; `granted_after` checks when it gets it.
  uint64_t Wait(const std::string& key = "k") {
    Acquire waiting = rig_.MakeAcquire(key);
    waiting.wait = absl::Minutes(2);
    return rig_.Ask(9, waiting);
  }
  void ExpectGrantedAfter(uint64_t waiting, absl::Duration delay) {
    rig_.Pass(delay - absl::Milliseconds(1));
    EXPECT_FALSE(rig_.Answer<Grant>(9, waiting).has_value());
    rig_.Pass(absl::Milliseconds(5));
    EXPECT_TRUE(rig_.Answer<Grant>(9, waiting).has_value());
  }

  EngineRig rig_;
};

TEST_F(ReleaseDelay, ASessionThatEndsWithoutReleasingKeepsItsKeysBack) {
  rig_.Open(1);
  rig_.Take(1, rig_.MakeAcquire("k", kAlice));
  const uint64_t waiting = Wait();
  rig_.Do(ChannelClosed{1, StreamEnd::kByClient});
  ExpectGrantedAfter(waiting, absl::Seconds(5));
}

TEST_F(ReleaseDelay, ALeaseThatRanOutKeepsItsKeyBack) {
  Acquire bare = rig_.MakeAcquire("k", kAlice);
  bare.lease = absl::Seconds(2);
  rig_.Take(2, bare);
  ExpectGrantedAfter(Wait(), absl::Seconds(7));
}

TEST_F(ReleaseDelay, ALossGivenBackKeepsItsKeyBack) {
  rig_.Open(1);
  Acquire limited = rig_.MakeAcquire("k", kAlice);
  limited.max_hold = absl::Seconds(10);
  const Grant grant = rig_.Take(1, limited);
  const uint64_t waiting = Wait();
  rig_.Pass(absl::Milliseconds(9700));
  ASSERT_EQ(rig_.Find<Lost>(1)->reason, LossReason::kMaxHold);
  rig_.Tell(1, LostAck{{}, grant.hold_id});
  ExpectGrantedAfter(waiting, absl::Seconds(5));
}

TEST_F(ReleaseDelay, AReleaseIsNotDelayed) {
  rig_.Open(1);
  const Grant grant = rig_.Take(1, rig_.MakeAcquire("k", kAlice));
  const uint64_t waiting = Wait();
  rig_.GiveUp(1, grant);
  EXPECT_TRUE(rig_.Answer<Grant>(9, waiting).has_value());
}

TEST_F(ReleaseDelay, TheLongestPrefixOfTheNamespaceCounts) {
  rig_.Open(1);
  rig_.Take(1, rig_.MakeAcquire("a", kAlice));
  const uint64_t waiting = Wait("a");
  rig_.Do(ChannelClosed{1, StreamEnd::kByClient});
  ExpectGrantedAfter(waiting, absl::Seconds(1));
}

TEST_F(ReleaseDelay, AGrantThatNobodyWantedAnyMoreIsNotDelayed) {
  rig_.Open(1);
  rig_.HoldUp();
  const uint64_t taken = rig_.Ask(1, rig_.MakeAcquire("k", kAlice));
  rig_.Do(Cancel{{1, taken}});
  rig_.LetGo();
  const uint64_t waiting = Wait();
  EXPECT_TRUE(rig_.Answer<Grant>(9, waiting).has_value());
}

}  // namespace
}  // namespace holdfast::engine
