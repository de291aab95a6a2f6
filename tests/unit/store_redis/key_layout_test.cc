// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/key_layout.h"

#include <gtest/gtest.h>

namespace holdfast::redis {
namespace {

TEST(KeyLayout, NamesAreThoseThatTheContractGives) {
  const KeyLayout layout("holdfast:");
  EXPECT_EQ(layout.LockKey({"default", "a:b"}), "holdfast:default:a:b");
  EXPECT_EQ(layout.state_key(), "holdfast:#state");
  EXPECT_EQ(layout.Channel({"default", "k"}), "holdfast:#free:default:k");
  EXPECT_EQ(layout.WatchChannel(), "holdfast:#watch");
  EXPECT_EQ(layout.Refusal({"other", "#x"}), "");
}

TEST(KeyLayout, AnEmptyPrefixServesPlainKeysOfTheDefaultNamespace) {
  const KeyLayout layout("");
  EXPECT_EQ(layout.LockKey({"default", "k"}), "k");
  EXPECT_EQ(layout.state_key(), "#holdfast:state");
  EXPECT_EQ(layout.Channel({"default", "k"}), "#free:default:k");
  EXPECT_EQ(layout.WatchChannel(), "#watch");
  EXPECT_EQ(layout.Refusal({"default", "k"}), "");
  EXPECT_NE(layout.Refusal({"other", "k"}), "");
  EXPECT_NE(layout.Refusal({"default", "#k"}), "");
  EXPECT_FALSE(layout.ParseLockKey("default", "", "#holdfast:state").has_value());
}

TEST(KeyLayout, APatternIsTakenLiterally) {
  const KeyLayout layout("p*:");
  EXPECT_EQ(layout.ScanPattern("default", "a[b]?\\"), "p\\*:default:a\\[b\\]\\?\\\\*");
}

TEST(KeyLayout, ALockKeyIsReadBack) {
  const KeyLayout layout("p:");
  EXPECT_EQ(layout.ParseLockKey("default", "a", "p:default:a:b")->key, "a:b");
  EXPECT_FALSE(layout.ParseLockKey("default", "b", "p:default:a:b").has_value());
  EXPECT_FALSE(layout.ParseLockKey("other", "", "p:default:a").has_value());
  EXPECT_FALSE(layout.ParseLockKey("default", "", "p:default:").has_value());
  EXPECT_EQ(layout.NameOf("p:ns:a:b"), (KeyName{"ns", "a:b"}));
  for (const char* none : {"q:ns:a", "p:ns:", "p:#state"})
    EXPECT_FALSE(layout.NameOf(none).has_value());
  EXPECT_EQ(KeyLayout("").NameOf("a:b"), (KeyName{"default", "a:b"}));
}

}  // namespace
}  // namespace holdfast::redis
