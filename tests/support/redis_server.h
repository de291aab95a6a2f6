// SPDX-License-Identifier: Apache-2.0
//
// A redis-server of the test's own, on a socket in a temporary folder, and a
// plain client to look at it with.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace holdfast::testing {

// What Redis answered, arrays flattened: {"1", "a", ...}; an error is one item that begins with
// '-', nil is "(nil)".
using RawReply = std::vector<std::string>;

// Blocking; gives up after 10 seconds of silence with a reply of "-no answer".
class RawRedis {
 public:
  explicit RawRedis(const std::string& socket_path);
  ~RawRedis();
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;

  RawReply Run(const std::vector<std::string>& args);
  // The first item of the reply.
  std::string Get(const std::vector<std::string>& args);
  bool connected() const { return fd_ >= 0; }

 private:
  std::string ReadLine();
  std::string ReadBytes(size_t n);
  bool Fill();
  void ReadReply(RawReply* out);

  int fd_ = -1;
  std::string buffer_;
};

class RedisServer {
 public:
  // Null where redis-server does not come up.
  static std::unique_ptr<RedisServer> Start(std::vector<std::string> options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::string url() const { return "redis+unix://" + socket_path(); }
  std::string socket_path() const { return folder_ + "/redis.sock"; }
  const std::string& folder() const { return folder_; }

  RawReply Run(const std::vector<std::string>& args);
  std::string Get(const std::vector<std::string>& args);

  // Kills it and starts it again, empty.
  bool RestartEmpty();
  void Kill();
  bool Launch();
  void Stop() const;      // SIGSTOP
  void Continue() const;  // SIGCONT

 private:
  RedisServer(std::string folder, std::vector<std::string> options)
      : folder_(std::move(folder)), options_(std::move(options)) {}

  const std::string folder_;
  const std::vector<std::string> options_;
  pid_t pid_ = -1;
  std::unique_ptr<RawRedis> raw_;
};

}  // namespace holdfast::testing
