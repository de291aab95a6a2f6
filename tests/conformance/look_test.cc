// SPDX-License-Identifier: Apache-2.0
//
// Looking: notes, reports, listings with whatever a key may look like.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/conformance/store_test.h"

namespace holdfast::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

class LookTest : public StoreTest {
 protected:
  std::vector<std::string> List(const std::string& prefix, const std::string& ns = "default") {
    std::vector<std::string> keys;
    ListOp op{ns, prefix, ""};
    do {
      const ListPage page = Expect<ListPage>(op);
      for (const KeyReport& report : page.keys) {
        EXPECT_EQ(report.name.ns, ns);
        keys.push_back(report.name.key);
      }
      op.cursor = page.next_cursor;
    } while (!op.cursor.empty() && !HasFailure());
    std::sort(keys.begin(), keys.end());
    return keys;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, LookTest, ::testing::ValuesIn(AllStoreKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(LookTest, AReportSaysWhoHolds) {
  EXPECT_TRUE(Expect<KeyReport>(InspectOp{{"default", "k"}}).free());
  AcquireOp one = Acquire(Hold("k", "a", "s1"));
  one.note = "trace=1\nuser=\xc3\xa9";
  const Granted granted = Expect<Granted>(one);
  Expect<Granted>(one);
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));

  const KeyReport report = Expect<KeyReport>(InspectOp{{"default", "k"}});
  EXPECT_EQ(report.name, (KeyName{"default", "k"}));
  EXPECT_EQ(report.token, granted.token);
  EXPECT_EQ(report.mode, Mode::kExclusive);
  ASSERT_EQ(report.holders.size(), 2u);
  auto holders = report.holders;
  std::sort(holders.begin(), holders.end(),
            [](const auto& x, const auto& y) { return x.session < y.session; });
  EXPECT_EQ(holders[0].note, one.note);
  EXPECT_EQ(holders[0].count, 2u);
  EXPECT_EQ(holders[0].hold_id, "hold-a-s1");
  EXPECT_EQ(holders[1].note, "");
  EXPECT_EQ(holders[1].session, "s2");
}

TEST_P(LookTest, ANoteEndsWithItsHold) {
  AcquireOp op = Acquire(Hold("k", "a", "s1"));
  op.note = "old";
  Expect<Granted>(op);
  Expect<Granted>(Acquire(Hold("k", "a", "s2")));
  Expect<Released>(Release(op.hold));
  op.note = "";
  Expect<Granted>(op);
  for (const HolderState& h : Expect<KeyReport>(InspectOp{{"default", "k"}}).holders) {
    EXPECT_EQ(h.note, "");
  }
}

TEST_P(LookTest, OddKeysAreKeysLikeOthers) {
  const std::vector<std::string> keys = {
      "a",   "a/b", "{a}", "a:b", "}{",   "{}x",      "*",         "?",
      "[",   "a*",  "a?b", "[a]", "a[b]", "\\",       "a\\",       "^",
      "[^a", "%41", " ",   "a b", "\"",   "'",        "#h",        "-",
      "$1",  "0",   "%s",  "..",  ",",    "\xc3\xa9", "a\xc3\xa9", std::string(512, 'x')};
  int64_t n = 0;
  for (const std::string& key : keys) {
    const Granted granted = Expect<Granted>(Acquire(Hold(key, "a")));
    EXPECT_GT(granted.token, 0);
    ++n;
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(Expect<Busy>(Acquire(Hold(key, "b"))).holders.size(), 1u) << key;
  }
  EXPECT_THAT(List(""), UnorderedElementsAreArray(keys));
  for (const std::string& prefix : keys) {
    std::vector<std::string> expected;
    for (const std::string& key : keys) {
      if (key.compare(0, prefix.size(), prefix) == 0) expected.push_back(key);
    }
    EXPECT_THAT(List(prefix), UnorderedElementsAreArray(expected)) << "prefix " << prefix;
  }
  for (const std::string& key : keys) {
    EXPECT_TRUE(Expect<Released>(Release(Hold(key, "a"))).freed) << key;
  }
  EXPECT_THAT(List(""), IsEmpty());
}

TEST_P(LookTest, AListingNamesWhatIsHeldInItsNamespace) {
  Expect<Granted>(Acquire(Hold("jobs/1", "a")));
  Expect<Granted>(Acquire(Hold("jobs/2", "a")));
  Expect<Granted>(Acquire(Hold("tasks/1", "a")));
  AcquireOp other = Acquire(Hold("jobs/3", "a"));
  other.hold.name.ns = "other";
  Expect<Granted>(other);
  AcquireOp kept = Acquire(Hold("jobs/kept", "a"));
  kept.min_hold = absl::Seconds(20);
  Expect<Granted>(kept);
  Expect<Released>(Release(kept.hold));
  Expect<Granted>(Acquire(Hold("jobs/free", "a")));
  Expect<Released>(Release(Hold("jobs/free", "a")));

  EXPECT_THAT(List("jobs/"), ElementsAre("jobs/1", "jobs/2", "jobs/kept"));
  EXPECT_THAT(List("", "other"), ElementsAre("jobs/3"));
  EXPECT_THAT(List("nothing"), IsEmpty());
}

TEST_P(LookTest, ALongListingComesInSteps) {
  std::vector<std::string> keys;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    keys.push_back("key-" + std::to_string(i));
    ids.push_back(client_->Submit(Acquire(Hold(keys.back(), "a"))));
  }
  for (uint64_t id : ids) As<Granted>(client_->Wait(id));
  const ListPage first = Expect<ListPage>(ListOp{"default", "key-", ""});
  EXPECT_FALSE(first.next_cursor.empty());
  EXPECT_LT(first.keys.size(), 600u);
  EXPECT_THAT(List("key-"), UnorderedElementsAreArray(keys));
}

}  // namespace
}  // namespace holdfast::testing
