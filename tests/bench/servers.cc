// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/servers.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "tests/bench/stream.h"

namespace holdfast::bench {
namespace {

constexpr absl::Duration kReadyLimit = absl::Seconds(10);

// A daemon serves before its store can be reached.
absl::Status AwaitGrants(const std::string& address) {
  const MachineClock clock;
  const BootTime limit = clock.Now() + kReadyLimit;
  const auto stub = v1::LockService::NewStub(Connect(address));
  v1::AcquireRequest request;
  request.set_key("bench:ready");
  request.mutable_lease()->set_seconds(1);
  grpc::Status status;
  do {
    grpc::ClientContext context;
    v1::AcquireResponse response;
    status = stub->Acquire(&context, request, &response);
  } while (!status.ok() && clock.Now() < limit);
  return status.ok() ? absl::OkStatus() : absl::UnavailableError(status.error_message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Servers>> Servers::Start(const std::string& daemon_program) {
  std::unique_ptr<Servers> servers(new Servers);
  servers->program_ = daemon_program;
  absl::Status status = servers->StartAll();
  if (!status.ok()) return status;
  return servers;
}

Servers::~Servers() {
  on_redis_.reset();
  on_redis_tcp_.reset();
  embedded_.reset();
  redis_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

absl::Status Servers::StartAll() {
  std::string folder = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError("no temporary folder");
  folder_ = folder;

  port_ = FreePort();
  redis_ = testing::RedisServer::Start({"--port", absl::StrCat(port_), "--bind", "127.0.0.1"});
  if (redis_ == nullptr) return absl::UnavailableError("redis-server does not start");

  const auto start = [this](const char* name, const std::string& store,
                            std::unique_ptr<DaemonProcess>& to) {
    absl::StatusOr<std::unique_ptr<DaemonProcess>> daemon = StartDaemon(name, store);
    if (!daemon.ok()) return daemon.status();
    to = *std::move(daemon);
    return AwaitGrants(to->unix_address());
  };
  absl::Status status = start("redis", redis_->url(), on_redis_);
  if (status.ok()) {
    status = start("redis-tcp", absl::StrCat("redis://127.0.0.1:", port_), on_redis_tcp_);
  }
  if (status.ok()) status = start("embedded", "memory:", embedded_);
  return status;
}

absl::StatusOr<std::unique_ptr<DaemonProcess>> Servers::FreshEmbedded() const {
  return StartDaemon("fresh", "memory:");
}

absl::StatusOr<std::unique_ptr<DaemonProcess>> Servers::StartDaemon(
    const std::string& name, const std::string& store) const {
  const std::string folder = absl::StrCat(folder_, "/", name);
  std::error_code ignored;
  std::filesystem::create_directory(folder, ignored);
  const std::string data = folder + "/data";
  return DaemonProcess::Start(program_, folder, store == "memory:" ? store + data : store);
}

}  // namespace holdfast::bench
