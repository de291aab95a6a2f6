// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

using Kind = KeyNews::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kWatcher = 90;

class Watching : public ::testing::Test {
 protected:
  void Begin(uint64_t channel = kWatcher, const std::string& prefix = "") {
    EXPECT_TRUE(rig_.Answer<WatchBegan>(channel, Ask(channel, prefix)).has_value());
  }
  uint64_t Ask(uint64_t channel, const std::string& prefix) {
    Watch watch;
    watch.ns = "default";
    watch.prefix = prefix;
    return rig_.Tell(channel, watch);
  }
  // "granted k alice", or "gap".
  std::vector<std::string> Heard(uint64_t channel = kWatcher) {
    static constexpr const char* kKinds[] = {"",     "granted", "released",
                                             "lost", "undone",  "waiting"};
    std::vector<std::string> all;
    for (const Watched& watched : rig_.All<Watched>(channel)) {
      if (watched.news == nullptr) {
        all.push_back("gap");
        continue;
      }
      const KeyNews& news = *watched.news;
      std::string text = absl::StrCat(kKinds[static_cast<int>(news.kind)], " ", news.name.key, " ",
                                      news.owner.substr(0, news.owner.find('-')));
      if (news.kind == Kind::kLost) absl::StrAppend(&text, " ", static_cast<int>(news.reason));
      all.push_back(std::move(text));
    }
    return all;
  }
  Acquire Waiting(const std::string& key, const std::string& owner) {
    Acquire acquire = rig_.MakeAcquire(key, owner);
    acquire.wait = absl::Minutes(1);
    return acquire;
  }
  uint64_t AskAll(uint64_t channel, std::vector<KeyAndMode> keys, absl::Duration wait) {
    AcquireAll all;
    all.ns = "default";
    all.keys = std::move(keys);
    all.owner = kCarol;
    all.wait = wait;
    all.max_hold = absl::ZeroDuration();
    return rig_.Tell(channel, all);
  }

  EngineRig rig_;
};

TEST_F(Watching, GrantsWaitsAndReleasesComeInTheirOrder) {
  Begin();
  rig_.Open(1);
  rig_.Open(2);
  const Grant first = rig_.Take(1, rig_.MakeAcquire("k", kAlice));
  const uint64_t second = rig_.Ask(2, Waiting("k", kBob));
  rig_.GiveUp(1, first);
  rig_.GiveUp(2, *rig_.Answer<Grant>(2, second));
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "waiting k bob", "released k alice",
                                   "granted k bob", "released k bob"));
}

TEST_F(Watching, AWaiterIsToldOnceHoweverOftenItTries) {
  Begin();
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  rig_.Ask(2, Waiting("k", kBob));
  rig_.Ask(3, Waiting("k", ""));
  rig_.Pass(absl::Seconds(20));
  EXPECT_EQ(Heard().size(), 3u);
}

TEST_F(Watching, WhoDoesNotWaitIsNoNews) {
  Begin();
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  rig_.Ask(2, rig_.MakeAcquire("k", kBob));
  EXPECT_THAT(Heard(), ElementsAre("granted k alice"));
}

TEST_F(Watching, OnlyKeysWithThePrefixAreTold) {
  Begin(kWatcher, "jobs/");
  Begin(kWatcher + 1, "");
  rig_.Take(7, rig_.MakeAcquire("jobs/1", kAlice));
  rig_.Take(7, rig_.MakeAcquire("job", kAlice));
  Acquire elsewhere = rig_.MakeAcquire("jobs/1", kAlice);
  elsewhere.name.ns = "other";
  rig_.Take(7, elsewhere);
  EXPECT_THAT(Heard(), ElementsAre("granted jobs/1 alice"));
  EXPECT_THAT(Heard(kWatcher + 1), ElementsAre("granted jobs/1 alice", "granted job alice"));
}

TEST_F(Watching, ALossIsToldWhenItsHolderIsToldAndOnlyOnce) {
  Begin();
  rig_.Open(1);
  Acquire acquire = rig_.MakeAcquire("k", kAlice);
  acquire.max_hold = absl::Seconds(5);
  const Grant grant = rig_.Take(1, acquire);
  rig_.Pass(absl::Seconds(5) - SafetyMargin(absl::Seconds(30)));
  ASSERT_TRUE(rig_.Find<Lost>(1).has_value());
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "lost k alice 2"));
  rig_.Tell(1, LostAck{{}, grant.hold_id});
  rig_.Pass(absl::Minutes(1));
  EXPECT_EQ(Heard().size(), 2u);
}

TEST_F(Watching, WhatASessionLeavesIsLost) {
  Begin();
  rig_.Open(1);
  rig_.Take(1, rig_.MakeAcquire("k", kAlice));
  rig_.Do(ChannelClosed{1, StreamEnd::kByClient});
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "lost k alice 7"));
}

TEST_F(Watching, ABareLeaseThatExpiresIsLost) {
  Begin();
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  rig_.Pass(absl::Seconds(31));
  rig_.Take(8, rig_.MakeAcquire("k", kBob));
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "lost k alice 1", "granted k bob"));
}

TEST_F(Watching, KeysOfASetAreToldWhenItIsComplete) {
  Begin();
  const Grant other = rig_.Take(7, rig_.MakeAcquire("b", kAlice));
  rig_.Open(1);
  const uint64_t request = AskAll(1, {{"a"}, {"b"}}, absl::Minutes(1));
  // It has held `a`, and given it back to wait for `b` empty-handed.
  rig_.Pass(absl::Seconds(1));
  EXPECT_EQ(rig_.Answers(1, request), 0);
  EXPECT_THAT(Heard(), ElementsAre("granted b alice", "waiting b carol"));
  rig_.GiveUp(7, other);
  const auto all = rig_.Answer<AllGranted>(1, request);
  ASSERT_TRUE(all.has_value());
  EXPECT_THAT(Heard(), ElementsAre("granted b alice", "waiting b carol", "released b alice",
                                   "granted a carol", "granted b carol"));
  rig_.GiveUp(1, all->grants[0]);
  rig_.GiveUp(1, all->grants[1]);
  EXPECT_EQ(Heard().size(), 7u);
}

TEST_F(Watching, ASetThatIsGivenUpLeavesNoNews) {
  Begin();
  rig_.Take(7, rig_.MakeAcquire("b", kAlice));
  rig_.Open(1);
  AskAll(1, {{"a"}, {"b"}}, absl::ZeroDuration());
  rig_.Open(2);
  AskAll(2, {{"a"}, {"b"}}, absl::Minutes(1));
  rig_.Do(ChannelClosed{2, StreamEnd::kByClient});
  const std::vector<std::string> heard = Heard();
  for (const std::string& one : heard) {
    EXPECT_TRUE(one == "granted b alice" || one == "waiting b carol") << one;
  }
}

TEST_F(Watching, ASetNestedInAHoldTellsOnlyWhatIsNew) {
  rig_.Open(1);
  rig_.Take(1, rig_.MakeAcquire("a", kCarol));
  Begin();
  AskAll(1, {{"a"}, {"b"}}, absl::ZeroDuration());
  EXPECT_THAT(Heard(), ElementsAre("granted b carol"));
}

TEST_F(Watching, AGrantThatCrossesItsCancelIsReleased) {
  Begin();
  rig_.Open(1);
  rig_.HoldUp();
  const uint64_t request = rig_.Ask(1, Waiting("k", kAlice));
  rig_.Do(Cancel{{1, request}});
  rig_.LetGo();
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "released k alice"));
}

TEST_F(Watching, AfterTheStoreWasGoneTheWatcherIsToldOfTheGap) {
  Begin();
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  rig_.Down(/*carry_out=*/false);
  EXPECT_THAT(Heard(), ElementsAre("granted k alice"));
  rig_.Up();
  rig_.Take(7, rig_.MakeAcquire("a", kAlice));
  EXPECT_THAT(Heard(), ElementsAre("granted k alice", "gap", "granted a alice"));
}

TEST_F(Watching, WhileTheStoreIsGoneAWatchIsRefused) {
  rig_.Down(false);
  EXPECT_EQ(rig_.Refused(kWatcher, Ask(kWatcher, "")), Reason::kStoreUnreachable);
  rig_.Up();
  rig_.HoldUp();
  const uint64_t request = Ask(kWatcher, "");
  rig_.Down(false);
  EXPECT_EQ(rig_.Refused(kWatcher, request), Reason::kStoreUnreachable);
}

TEST_F(Watching, ANewsGapOfTheStoreIsPassedOn) {
  Begin();
  rig_.engine().OnStoreEvent(StoreEvent{StoreEvent::Kind::kNewsMissed, {}, {}, ""}, rig_.now());
  rig_.Pass(absl::ZeroDuration());
  EXPECT_THAT(Heard(), ElementsAre("gap"));
}

TEST_F(Watching, NothingIsToldToTheStoreWhileNobodyWatches) {
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  rig_.Ask(2, Waiting("k", kBob));
  EXPECT_EQ(rig_.tells(), 0);
  StoreEvent audience{StoreEvent::Kind::kAudience, {}, {}, ""};
  audience.watched = true;
  rig_.engine().OnStoreEvent(audience, rig_.now());
  rig_.Ask(3, Waiting("k", kCarol));
  EXPECT_EQ(rig_.tells(), 1);
}

TEST_F(Watching, WhoIsGoneHearsNothingAndTheLastOneEndsIt) {
  Begin();
  Begin(kWatcher + 1);
  rig_.Do(ChannelClosed{kWatcher, StreamEnd::kByClient});
  rig_.Take(7, rig_.MakeAcquire("k", kAlice));
  EXPECT_THAT(Heard(), IsEmpty());
  EXPECT_EQ(Heard(kWatcher + 1).size(), 1u);
  rig_.Do(ChannelClosed{kWatcher + 1, StreamEnd::kByClient});
  rig_.Ask(2, Waiting("k", kBob));
  EXPECT_EQ(rig_.tells(), 0);
}

TEST_F(Watching, NamespaceAndPrefixAreChecked) {
  Watch watch;
  watch.ns = "No";
  EXPECT_EQ(rig_.Refused(kWatcher, rig_.Tell(kWatcher, watch)), Reason::kInvalidField);
  EXPECT_EQ(rig_.Refused(kWatcher, Ask(kWatcher, "a\nb")), Reason::kInvalidField);
}

}  // namespace
}  // namespace holdfast::engine
