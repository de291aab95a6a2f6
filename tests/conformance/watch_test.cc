// SPDX-License-Identifier: Apache-2.0
//
// What those who watch are told, and in which order.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

using Kind = KeyNews::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatchTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (client_ != nullptr) Expect<Subscribed>(WatchOp{"default", ""});
  }

  // The news of a key until (and without) those of the hold that is given to the key `end` now.
  std::vector<KeyNews> NewsOf(const std::string& key) {
    const std::string end = absl::StrCat("end", ends_++);
    Expect<Granted>(Acquire(Hold(end, "z")));
    const auto is_end = [&](const StoreEvent& event) {
      return event.kind == StoreEvent::Kind::kNews && event.news->name.key == end;
    };
    const auto& events = client_->events();
    EXPECT_TRUE(loop_.RunUntil([&] { return std::any_of(events.begin(), events.end(), is_end); }));
    std::vector<KeyNews> news;
    for (const StoreEvent& event : events) {
      if (event.kind == StoreEvent::Kind::kNews && event.news->name.key == key) {
        news.push_back(*event.news);
      }
      EXPECT_NE(event.kind, StoreEvent::Kind::kNewsMissed);
    }
    client_->ForgetEvents();
    return news;
  }
  // "granted k-s1", the hold's id.
  static std::string Short(const KeyNews& news) {
    static constexpr const char* kKinds[] = {"",     "granted", "released",
                                             "lost", "undone",  "waiting"};
    std::string text = absl::StrCat(kKinds[static_cast<int>(news.kind)], " ", news.hold_id);
    if (news.kind == Kind::kLost) absl::StrAppend(&text, " ", static_cast<int>(news.reason));
    return text;
  }
  std::vector<std::string> ShortNewsOf(const std::string& key) {
    std::vector<std::string> all;
    for (const KeyNews& news : NewsOf(key)) all.push_back(Short(news));
    return all;
  }
  static std::string Id(const std::string& key, const std::string& owner,
                        const std::string& session = "s1") {
    return Hold(key, owner, session).hold_id;
  }

 private:
  int ends_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Stores, WatchTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(WatchTest, AGrantAndItsReleaseAreToldWithAllThatPeopleAsk) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.note = "a note: 1\x1f";
  const Granted granted = Expect<Granted>(op);
  Expect<Released>(Release(op.hold));
  const std::vector<KeyNews> news = NewsOf("k");
  ASSERT_EQ(news.size(), 2u);
  for (const KeyNews& one : news) {
    EXPECT_EQ(one.name, op.hold.name);
    EXPECT_EQ(one.owner, op.hold.owner);
    EXPECT_EQ(one.hold_id, op.hold.hold_id);
    EXPECT_EQ(one.session, "s1");
    EXPECT_EQ(one.note, op.note);
    EXPECT_EQ(one.token, granted.token);
    EXPECT_EQ(one.mode, Mode::kExclusive);
  }
  EXPECT_EQ(news[0].kind, Kind::kGranted);
  EXPECT_LE(absl::AbsDuration(news[0].lease - op.lease), kClockTolerance);
  EXPECT_EQ(news[1].kind, Kind::kReleased);
}

TEST_P(WatchTest, NestingInOneHoldIsNoNewsAndASecondHoldIs) {
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s1")));
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  Expect<Released>(Release(Hold("k", "a", "s1")));
  Expect<Released>(Release(Hold("k", "a", "s1")));
  Expect<Released>(Release(Hold("k", "a", "s2")));
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + Id("k", "a", "s1"), "granted " + Id("k", "a", "s2"),
                          "released " + Id("k", "a", "s1"), "released " + Id("k", "a", "s2")));
}

TEST_P(WatchTest, WhatChangesNothingIsNoNews) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  NewsOf("k");
  Expect<Busy>(Acquire(Hold("k", "b")));
  Expect<HoldGone>(Release(Hold("k", "b")));
  Expect<Renewed>(RenewOp{Hold("k", "a"), absl::Seconds(20)});
  Expect<Forced>(ForceOp{{"default", "k"}, "", /*immediate=*/false});
  EXPECT_THAT(ShortNewsOf("k"), IsEmpty());
}

TEST_P(WatchTest, ReadersAndPermitsAreToldOneByOne) {
  for (const Mode mode : {Mode::kShared, Mode::kPermit}) {
    const std::string key = mode == Mode::kShared ? "r" : "p";
    std::vector<int64_t> tokens;
    for (const char* owner : {"a", "b"}) {
      AcquireOp op = Acquire(Hold(key, owner));
      op.mode = mode;
      op.limit = mode == Mode::kPermit ? 2 : 0;
      op.note = owner;
      tokens.push_back(Expect<Granted>(op).token);
    }
    Expect<Released>(Release(Hold(key, "a")));
    Expect<Released>(Release(Hold(key, "b")));
    const std::vector<KeyNews> news = NewsOf(key);
    ASSERT_EQ(news.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(news[i].kind, i < 2 ? Kind::kGranted : Kind::kReleased);
      EXPECT_EQ(news[i].mode, mode);
      EXPECT_EQ(news[i].owner, Hold(key, i % 2 == 0 ? "a" : "b").owner);
      EXPECT_EQ(news[i].note, i % 2 == 0 ? "a" : "b");
      EXPECT_EQ(news[i].session, "s1");
      EXPECT_EQ(news[i].token, tokens[i % 2]);
    }
  }
}

TEST_P(WatchTest, AHoldThatIsTakenAwayOrGivenBackForItsOwnerIsLost) {
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Released>(Release(Hold("k", "a"), ReleaseKind::kAll));
  Expect<Granted>(Acquire(Hold("k", "b")));
  Expect<Forced>(ForceOp{{"default", "k"}, "", /*immediate=*/true});
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + Id("k", "a"), "lost " + Id("k", "a") + " 7",
                          "granted " + Id("k", "b"), "lost " + Id("k", "b") + " 3"));
}

TEST_P(WatchTest, AnExpiredHoldIsLostBeforeTheNextIsGranted) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(150);
  Expect<Granted>(op);
  AcquireWhenFree(Acquire(Hold("k", "b")), absl::Seconds(5));
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + Id("k", "a"), "lost " + Id("k", "a") + " 1",
                          "granted " + Id("k", "b")));
}

TEST_P(WatchTest, AnExpiredHoldIsLostWhereNobodyTouchesItsKey) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(150);
  Expect<Granted>(op);
  const auto lost = [](const StoreEvent& event) {
    return event.kind == StoreEvent::Kind::kNews && event.news->kind == Kind::kLost;
  };
  const auto& events = client_->events();
  EXPECT_TRUE(loop_.RunUntil([&] { return std::any_of(events.begin(), events.end(), lost); }));
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + Id("k", "a"), "lost " + Id("k", "a") + " 1"));
}

TEST_P(WatchTest, ARenewedHoldIsNotLost) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(300);
  Expect<Granted>(op);
  for (int i = 0; i < 4; ++i) {
    loop_.RunFor(absl::Milliseconds(150));
    Expect<Renewed>(RenewOp{op.hold, op.lease});
  }
  EXPECT_THAT(ShortNewsOf("k"), ElementsAre("granted " + Id("k", "a")));
}

TEST_P(WatchTest, AnUndoneAcquireIsToldAsSuch) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.op_id = "op";
  Expect<Granted>(op);
  Expect<Released>(Release(op.hold, ReleaseKind::kUndo, "op"));
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + op.hold.hold_id, "undone " + op.hold.hold_id));
}

TEST_P(WatchTest, AnUntoldGrantIsNoNewsUntilItIsTold) {
  AcquireOp op = Acquire(Hold("k", "a"));
  op.untold = true;
  Expect<Granted>(op);
  EXPECT_THAT(ShortNewsOf("k"), IsEmpty());
  KeyNews news;
  news.kind = Kind::kGranted;
  news.name = op.hold.name;
  news.owner = op.hold.owner;
  news.hold_id = op.hold.hold_id;
  news.lease = absl::Seconds(20);
  client_->Submit(TellOp{news});
  Expect<Released>(Release(op.hold));
  EXPECT_THAT(ShortNewsOf("k"),
              ElementsAre("granted " + op.hold.hold_id, "released " + op.hold.hold_id));
}

TEST_P(WatchTest, WhoBeginsToWaitIsToldByItsDaemon) {
  KeyNews news;
  news.kind = Kind::kWaiting;
  news.name = {"default", "k"};
  news.owner = "some-owner-of-a-key";
  news.mode = Mode::kShared;
  news.note = "why";
  news.queue_length = 3;
  client_->Submit(TellOp{news});
  const std::vector<KeyNews> heard = NewsOf("k");
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].kind, Kind::kWaiting);
  EXPECT_EQ(heard[0].owner, news.owner);
  EXPECT_EQ(heard[0].mode, Mode::kShared);
  EXPECT_EQ(heard[0].note, "why");
  EXPECT_EQ(heard[0].queue_length, 3u);
}

TEST_P(WatchTest, ManyKeysInOneTurnKeepTheirOrder) {
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> ids;
    for (int i = 0; i < 200; ++i) {
      ids.push_back(
          client_->Submit(Acquire(Hold(absl::StrCat("k", i % 10), absl::StrCat("o", i)))));
      ids.push_back(
          client_->Submit(Release(Hold(absl::StrCat("k", i % 10), absl::StrCat("o", i)))));
    }
    for (const uint64_t id : ids) client_->Wait(id);
    const std::vector<std::string> news = ShortNewsOf("k7");
    ASSERT_EQ(news.size(), 40u);
    for (int i = 0; i < 20; ++i) {
      const std::string id = Id("k7", absl::StrCat("o", i * 10 + 7));
      EXPECT_EQ(news[static_cast<size_t>(2 * i)], "granted " + id);
      EXPECT_EQ(news[static_cast<size_t>(2 * i) + 1], "released " + id);
    }
  }
}

TEST_P(WatchTest, AfterUnwatchingNothingIsTold) {
  client_->Submit(UnwatchOp{});
  Expect<Granted>(Acquire(Hold("k", "a")));
  Expect<Released>(Release(Hold("k", "a")));
  Expect<Subscribed>(WatchOp{"default", ""});
  EXPECT_THAT(ShortNewsOf("k"), IsEmpty());
}

TEST_P(WatchTest, HoldsThatWereThereBeforeAreLookedOutForToo) {
  client_->Submit(UnwatchOp{});
  AcquireOp op = Acquire(Hold("k", "a"));
  op.lease = absl::Milliseconds(400);
  Expect<Granted>(op);
  Expect<Subscribed>(WatchOp{"default", "k"});
  const auto& events = client_->events();
  EXPECT_TRUE(loop_.RunUntil([&] {
    return std::any_of(events.begin(), events.end(), [](const StoreEvent& event) {
      return event.kind == StoreEvent::Kind::kNews && event.news->kind == Kind::kLost;
    });
  }));
  EXPECT_THAT(ShortNewsOf("k"), ElementsAre("lost " + Id("k", "a") + " 1"));
}

}  // namespace
}  // namespace holdfast::testing
