// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/redis_url.h"

#include <gmock/gmock.h>

namespace holdfast::redis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Transport = RedisUrl::Transport;

TEST(RedisUrl, AHostAloneHasDefaults) {
  const auto url = ParseRedisUrl("redis://redis.example");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->transport, Transport::kTcp);
  EXPECT_EQ(url->host, "redis.example");
  EXPECT_EQ(url->port, 6379);
  EXPECT_EQ(url->db, 0);
  EXPECT_EQ(url->user, "");
  EXPECT_EQ(url->password, "");
  EXPECT_EQ(url->Describe(), "redis://redis.example:6379/0");
}

TEST(RedisUrl, EveryPartIsRead) {
  const auto url = ParseRedisUrl("rediss://al%40ice:p%3A%2F%40ss@[::1]:7000/3?cacert=/a%20b.pem");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->transport, Transport::kTls);
  EXPECT_EQ(url->user, "al@ice");
  EXPECT_EQ(url->password, "p:/@ss");
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 7000);
  EXPECT_EQ(url->db, 3);
  EXPECT_EQ(url->ca_file, "/a b.pem");
  EXPECT_EQ(url->Describe(), "rediss://[::1]:7000/3");
}

TEST(RedisUrl, APasswordMayStandAlone) {
  const auto url = ParseRedisUrl("redis://:secret@localhost:1/");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->user, "");
  EXPECT_EQ(url->password, "secret");
}

TEST(RedisUrl, ASocketHasAPathAndADatabase) {
  const auto url = ParseRedisUrl("redis+unix://u:p@/run/re%64is.sock?db=2");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->transport, Transport::kUnix);
  EXPECT_EQ(url->path, "/run/redis.sock");
  EXPECT_EQ(url->password, "p");
  EXPECT_EQ(url->db, 2);
  EXPECT_EQ(url->Describe(), "redis+unix:///run/redis.sock?db=2");
}

TEST(RedisUrl, AnErrorNamesThePartAndNoSecret) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://x", "scheme"},
      {"", "scheme"},
      {"redis://", "host"},
      {"redis://:7000", "host"},
      {"redis://[::1", "host"},
      {"redis://[::1]x", "host"},
      {"redis://h:", "port"},
      {"redis://h:0", "port"},
      {"redis://h:65536", "port"},
      {"redis://h:x", "port"},
      {"redis://h/x", "database"},
      {"redis://h/-1", "database"},
      {"redis://s3cret@h", "password"},
      {"redis://u:s3cret%2@h", "password"},
      {"redis://u:s3cret%zz@h", "password"},
      {"redis://u:s3cret%00@h", "password"},
      {"redis+unix://tmp/x", "path"},
      {"redis+unix:///x?db=a", "database"},
      {"redis://h?db=1", "option"},
      {"redis://h?cacert=/x", "option"},
      {"rediss://h?cert=/x", "option"},
  };
  for (const auto& [text, part] : cases) {
    const auto url = ParseRedisUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(url.status().message()), HasSubstr(part)) << text;
    EXPECT_THAT(std::string(url.status().message()), Not(HasSubstr("s3cret"))) << text;
  }
}

}  // namespace
}  // namespace holdfast::redis
