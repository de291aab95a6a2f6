// SPDX-License-Identifier: Apache-2.0
#include "server/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast::server {
namespace {

TEST(Log, TextStaysOnItsLine) {
  EXPECT_EQ(RenderLine(LogFormat::kText, LogLevel::kWarn, "two\nlines",
                       {{"key", "a b"}, {"n", "3"}, {"empty", ""}}),
            R"(warn  two\nlines key="a b" n=3 empty="")");
}

TEST(Log, JsonIsAnObjectsInside) {
  const std::string line = RenderLine(LogFormat::kJson, LogLevel::kError, "say \"hi\"",
                                      {{"key", "a\nb"}, {"bad", "\xff"}});
  const auto parsed = nlohmann::json::parse("{" + line + "}");
  EXPECT_EQ(parsed["level"], "error");
  EXPECT_EQ(parsed["message"], "say \"hi\"");
  EXPECT_EQ(parsed["key"], "a\nb");
  EXPECT_TRUE(parsed.contains("bad"));
}

}  // namespace
}  // namespace holdfast::server
