// SPDX-License-Identifier: Apache-2.0
//
// The servers that are measured: one Redis, a daemon on it over a Unix socket, one over TCP, and
// one with the embedded store. All of them on loopback, all gone with this object.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/daemon_process.h"
#include "tests/bench/redis_floor.h"
#include "tests/support/redis_server.h"

namespace holdfast::bench {

class Servers {
 public:
  static absl::StatusOr<std::unique_ptr<Servers>> Start(const std::string& daemon_program);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const DaemonProcess& on_redis() const { return *on_redis_; }
  const DaemonProcess& on_redis_tcp() const { return *on_redis_tcp_; }
  const DaemonProcess& embedded() const { return *embedded_; }
  RedisPlace redis() const { return {redis_->socket_path(), 0}; }
  RedisPlace redis_tcp() const { return {"", port_}; }

  // Another daemon with the embedded store, which has done nothing yet.
  absl::StatusOr<std::unique_ptr<DaemonProcess>> FreshEmbedded() const;

 private:
  Servers() = default;
  absl::Status StartAll();
  absl::StatusOr<std::unique_ptr<DaemonProcess>> StartDaemon(const std::string& name,
                                                             const std::string& store) const;

  std::string program_;
  std::string folder_;
  uint16_t port_ = 0;
  std::unique_ptr<testing::RedisServer> redis_;
  std::unique_ptr<DaemonProcess> on_redis_;
  std::unique_ptr<DaemonProcess> on_redis_tcp_;
  std::unique_ptr<DaemonProcess> embedded_;
};

}  // namespace holdfast::bench
