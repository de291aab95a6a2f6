// SPDX-License-Identifier: Apache-2.0
//
// Getting in: passwords, users, databases, TCP and TLS.
#include <gmock/gmock.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/redis/redis_test.h"

namespace holdfast::testing {
namespace {

using ::testing::HasSubstr;
using Kind = StoreEvent::Kind;

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

// A bare root file system has no /etc/hosts.
bool LocalhostHasAName() {
  addrinfo* found = nullptr;
  const bool resolved = getaddrinfo("localhost", nullptr, nullptr, &found) == 0;
  if (resolved) freeaddrinfo(found);
  return resolved;
}

class LoginTest : public RedisTest {
 protected:
  std::unique_ptr<StoreClient> With(const std::string& url) {
    RedisStoreOptions options = NoGrace();
    options.url = url;
    return Begin(options);
  }
  void ExpectServes(StoreClient& client) {
    ASSERT_TRUE(client.WaitEvent(Kind::kUp).has_value()) << (log_.empty() ? "" : log_.back());
    As<Granted>(client.Ask(Acquire(Hold("k", "a"))));
    As<Subscribed>(client.Ask(SubscribeOp{{"default", "k"}}));
    As<Released>(client.Ask(Release(Hold("k", "a"))));
  }
};

TEST_F(LoginTest, AWrongPasswordIsSaidAndNotShown) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--requirepass", "p@ss:word"}));
  // The raw client logs in too, so that the server can be looked at.
  server_->Run({"AUTH", "p@ss:word"});
  const std::string path = server_->socket_path();
  auto wrong = With(absl::StrCat("redis+unix://:s3cret@", path));
  const auto down = wrong->WaitEvent(Kind::kDown);
  ASSERT_TRUE(down.has_value());
  EXPECT_THAT(down->detail, HasSubstr("login was refused"));
  EXPECT_THAT(down->detail, ::testing::Not(HasSubstr("s3cret")));
  auto none = With(absl::StrCat("redis+unix://", path));
  EXPECT_TRUE(none->WaitEvent(Kind::kDown).has_value());
  auto right = With(absl::StrCat("redis+unix://:p%40ss%3Aword@", path));
  ExpectServes(*right);
}

TEST_F(LoginTest, AUserAndADatabaseAreUsed) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  server_->Run({"ACL", "SETUSER", "alice", "on", ">secret", "~*", "&*", "+@all"});
  auto client = With(absl::StrCat("redis+unix://alice:secret@", server_->socket_path(), "?db=3"));
  ExpectServes(*client);
  EXPECT_EQ(server_->Get({"DBSIZE"}), "0");
  server_->Run({"SELECT", "3"});
  EXPECT_EQ(server_->Get({"EXISTS", "t:#state"}), "1");
}

TEST_F(LoginTest, HostNamesAndAddressesAreReached) {
  const int port = FreePort();
  ASSERT_NO_FATAL_FAILURE(StartServer({"--port", absl::StrCat(port), "--bind", "127.0.0.1"}));
  auto by_address = With(absl::StrCat("redis://127.0.0.1:", port));
  ExpectServes(*by_address);
  if (!LocalhostHasAName()) GTEST_SKIP() << "this machine cannot resolve localhost";
  auto by_name = With(absl::StrCat("redis://localhost:", port));
  ExpectServes(*by_name);
}

TEST_F(LoginTest, ANameThatCannotBeResolvedIsDown) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  auto client = With("redis://does-not-exist.invalid");
  const auto down = client->WaitEvent(Kind::kDown);
  ASSERT_TRUE(down.has_value());
  EXPECT_THAT(down->detail, HasSubstr("resolv"));
}

TEST_F(LoginTest, TlsChecksTheCertificateAndItsName) {
  if (!LocalhostHasAName()) GTEST_SKIP() << "this machine cannot resolve localhost";
  char folder[] = "/tmp/holdfast-tls-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string cert = absl::StrCat(folder, "/cert.pem");
  const std::string key = absl::StrCat(folder, "/key.pem");
  const std::string make = absl::StrCat(
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
      " -addext subjectAltName=DNS:localhost -keyout ",
      key, " -out ", cert, " 2>/dev/null");
  ASSERT_EQ(system(make.c_str()), 0);
  const int port = FreePort();
  StartServer({"--tls-port", absl::StrCat(port), "--bind", "127.0.0.1", "--tls-cert-file", cert,
               "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"});
  auto trusted = With(absl::StrCat("rediss://localhost:", port, "?cacert=", cert));
  ExpectServes(*trusted);
  // A grant too big for one TLS record.
  std::vector<uint64_t> ids;
  for (int i = 0; i < 500; ++i) {
    ids.push_back(trusted->Submit(Acquire(Hold(absl::StrCat("k", i), "a"))));
  }
  for (uint64_t id : ids) As<Granted>(trusted->Wait(id));

  auto unknown_issuer = With(absl::StrCat("rediss://localhost:", port));
  EXPECT_TRUE(unknown_issuer->WaitEvent(Kind::kDown).has_value());
  EXPECT_FALSE(unknown_issuer->HasEvent(Kind::kUp));
  auto wrong_name = With(absl::StrCat("rediss://127.0.0.1:", port, "?cacert=", cert));
  EXPECT_TRUE(wrong_name->WaitEvent(Kind::kDown).has_value());
  loop_.RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(wrong_name->HasEvent(Kind::kUp));
  RedisStoreOptions options = NoGrace();
  options.url = "rediss://localhost?cacert=/does/not/exist";
  auto store = MakeRedisStore(options, loop_.uv());
  ASSERT_TRUE(store.ok());
  EXPECT_THAT(std::string((*store)->Start(trusted.get()).message()), HasSubstr("cacert"));
  for (const std::string& file : {cert, key}) unlink(file.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace holdfast::testing
