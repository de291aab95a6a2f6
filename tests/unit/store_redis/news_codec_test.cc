// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/news_codec.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace holdfast::redis {
namespace {

KeyNews SomeNews() {
  KeyNews news;
  news.kind = KeyNews::Kind::kLost;
  news.name = {"ns", "a:b 7:c"};
  news.owner = "an owner: 3";
  news.hold_id = "h";
  news.session = "s";
  news.mode = Mode::kPermit;
  news.token = (int64_t{1} << 53) - 1;
  news.note = "4:note\n,";
  news.reason = LossReason::kFeedMissed;
  return news;
}

TEST(NewsCodec, WhatIsEncodedIsDecoded) {
  const KeyLayout layout("p:");
  const std::string message = EncodeNews(SomeNews(), layout) + EncodeNews(SomeNews(), layout);
  const auto all = DecodeNews(message, layout);
  ASSERT_EQ(all.size(), 2u);
  for (const auto& heard : all) {
    ASSERT_TRUE(heard.has_value());
    EXPECT_EQ(heard->news.kind, KeyNews::Kind::kLost);
    EXPECT_EQ(heard->news.name, SomeNews().name);
    EXPECT_EQ(heard->news.owner, SomeNews().owner);
    EXPECT_EQ(heard->news.hold_id, "h");
    EXPECT_EQ(heard->news.session, "s");
    EXPECT_EQ(heard->news.mode, Mode::kPermit);
    EXPECT_EQ(heard->news.token, SomeNews().token);
    EXPECT_EQ(heard->news.note, SomeNews().note);
    EXPECT_EQ(heard->news.reason, LossReason::kFeedMissed);
    EXPECT_FALSE(heard->key_was_free);
  }
}

TEST(NewsCodec, AMissedMarkTornNewsAndNewsOfALaterVersionAreGaps) {
  const KeyLayout layout("p:");
  const std::string one = EncodeNews(SomeNews(), layout);
  for (const std::string& message :
       {EncodeMissed(), one.substr(0, one.size() - 1), std::string("no"),
        std::string("99999999999999999999:"), std::string("6:1:Z0:,")}) {
    const auto all = DecodeNews(message, layout);
    ASSERT_EQ(all.size(), 1u) << message;
    EXPECT_FALSE(all[0].has_value()) << message;
  }
  EXPECT_FALSE(DecodeNews(one, KeyLayout("another:"))[0].has_value());
}

TEST(NewsCodec, FieldsOfALaterVersionArePassedOver) {
  const KeyLayout layout("");
  KeyNews news = SomeNews();
  news.name.ns = "default";
  std::string one = EncodeNews(news, layout);
  one = one.substr(one.find(':') + 1) + "3:new";
  const auto all = DecodeNews(absl::StrCat(one.size(), ":", one), layout);
  ASSERT_TRUE(all.size() == 1 && all[0].has_value());
  EXPECT_EQ(all[0]->news.name, news.name);
}

}  // namespace
}  // namespace holdfast::redis
