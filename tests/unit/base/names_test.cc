// SPDX-License-Identifier: Apache-2.0
#include "src/base/names.h"

#include <gtest/gtest.h>

#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast {
namespace {

TEST(Names, AKeyHasOneToManyBytes) {
  EXPECT_FALSE(CheckKey("").ok());
  EXPECT_TRUE(CheckKey("k").ok());
  EXPECT_TRUE(CheckKey(std::string(512, 'k')).ok());
  const absl::Status long_key = CheckKey(std::string(513, 'k'));
  EXPECT_EQ(ReasonOf(long_key), Reason::kInvalidField);
  EXPECT_EQ(FieldOf(long_key), "key");
  EXPECT_NE(long_key.message().find("512"), absl::string_view::npos);
}

TEST(Names, OddKeysAreKeys) {
  for (const char* key : {"a/b", "{a}", "a:b", "}{", "{}x", "*?[", "#k", "sch\xc3\xb6n", " "}) {
    EXPECT_TRUE(CheckKey(key).ok()) << key;
  }
}

TEST(Names, AKeyIsUtf8WithoutControlCharacters) {
  for (const char* key : {"a\nb", "\x1f", "\x7f", "\xc2\x85", "\xff", "\xc3", "\xc0\xaf",
                          "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"}) {
    EXPECT_FALSE(CheckKey(key).ok()) << key;
  }
  EXPECT_FALSE(CheckKey(absl::string_view("a\0b", 3)).ok());
}

TEST(Names, ANamespaceIsNarrow) {
  EXPECT_TRUE(CheckNamespace("team-a.orders_2").ok());
  EXPECT_TRUE(CheckNamespace(std::string(64, 'n')).ok());
  EXPECT_FALSE(CheckNamespace(std::string(65, 'n')).ok());
  EXPECT_FALSE(CheckNamespace("").ok());
  EXPECT_FALSE(CheckNamespace("Team").ok());
  EXPECT_FALSE(CheckNamespace("a:b").ok());
}

TEST(Names, AnOwnerIsNotGuessableAndNotOurs) {
  EXPECT_FALSE(CheckOwner("bob").ok());
  EXPECT_TRUE(CheckOwner(std::string(16, 'o')).ok());
  EXPECT_FALSE(CheckOwner("#" + std::string(20, 'o')).ok());
  EXPECT_FALSE(CheckOwner(std::string(257, 'o')).ok());
}

TEST(Names, ANoteMayHaveLinesButNoNul) {
  EXPECT_TRUE(CheckText("two\nlines", "note", limits::kMaxNoteBytes).ok());
  EXPECT_FALSE(CheckText(absl::string_view("a\0b", 3), "note", 10).ok());
  EXPECT_FALSE(CheckText(std::string(1025, 'n'), "note", limits::kMaxNoteBytes).ok());
}

TEST(Names, AFingerprintTellsOwnersApartAndIsNotTheOwner) {
  const std::string one = OwnerFingerprint("an-owner-of-the-tests");
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(one, OwnerFingerprint("an-owner-of-the-tests"));
  EXPECT_NE(one, OwnerFingerprint("another-owner-of-them"));
}

}  // namespace
}  // namespace holdfast
