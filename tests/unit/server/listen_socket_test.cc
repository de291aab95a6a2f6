// SPDX-License-Identifier: Apache-2.0
#include "server/front/listen_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace holdfast::server {
namespace {

using testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() : folder_(testing::TempDir() + "hf_XXXXXX") { (void)mkdtemp(folder_.data()); }
  ~UnixSocketTest() override {
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/s"; }
  // A listening socket at path(); closing it leaves the file.
  int Listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }

  std::string folder_;
};

TEST_F(UnixSocketTest, AFreePathIsFine) { EXPECT_TRUE(PrepareUnixSocket(path()).ok()); }

TEST_F(UnixSocketTest, AStaleSocketIsRemovedAndALiveOneIsNot) {
  const int fd = Listen();
  EXPECT_THAT(std::string(PrepareUnixSocket(path()).message()),
              HasSubstr("another process listens"));
  EXPECT_EQ(access(path().c_str(), F_OK), 0);
  close(fd);
  EXPECT_TRUE(PrepareUnixSocket(path()).ok());
  EXPECT_NE(access(path().c_str(), F_OK), 0);
}

TEST_F(UnixSocketTest, WhatIsNoSocketIsNotTouched) {
  std::ofstream(path()) << "data";
  EXPECT_THAT(std::string(PrepareUnixSocket(path()).message()), HasSubstr("no socket"));
  EXPECT_EQ(access(path().c_str(), F_OK), 0);
}

TEST_F(UnixSocketTest, AMissingFolderIsNamed) {
  EXPECT_THAT(std::string(PrepareUnixSocket(folder_ + "/none/s").message()),
              HasSubstr(folder_ + "/none"));
}

TEST_F(UnixSocketTest, APathThatIsTooLongSaysSo) {
  EXPECT_THAT(std::string(PrepareUnixSocket("/" + std::string(200, 'x')).message()),
              HasSubstr("at most 107 bytes"));
}

TEST(WhyNotBound, SaysThatSomebodyListens) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr address{};
  address.sa_family = AF_INET;  // any address, any port
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(fd, &address, length), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, &address, &length), 0);
  const auto high = static_cast<unsigned char>(address.sa_data[0]);
  const auto low = static_cast<unsigned char>(address.sa_data[1]);
  EXPECT_EQ(WhyNotBound("127.0.0.1:" + std::to_string(high * 256 + low)),
            "another process listens there");
  close(fd);
}

}  // namespace
}  // namespace holdfast::server
