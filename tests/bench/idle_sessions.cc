// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/idle_sessions.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/bench/stream.h"

namespace holdfast::bench {
namespace {

constexpr int kStreamsPerConnection = 100;

absl::Status Open(Loop* loop, const std::string& address, int sessions,
                  std::vector<std::unique_ptr<Stream>>& streams) {
  std::shared_ptr<grpc::Channel> channel;
  for (int i = 0; i < sessions; ++i) {
    if (i % kStreamsPerConnection == 0) channel = Connect(address);
    streams.push_back(std::make_unique<Stream>(loop, channel, [](const v1::SessionEvent&) {}));
  }
  size_t opened = 0;
  return loop->RunUntil([&] {
    while (opened < streams.size() && streams[opened]->opened()) ++opened;
    return opened == streams.size();
  });
}

}  // namespace

absl::StatusOr<double> KbPerIdleSession(const DaemonProcess& daemon, int sessions) {
  Loop loop;
  std::vector<std::unique_ptr<Stream>> streams;
  // What any first session brings into memory is not the price of one more.
  absl::Status status = Open(&loop, daemon.unix_address(), 1, streams);
  if (!status.ok()) return status;
  const double before = daemon.ResidentKb();
  status = Open(&loop, daemon.unix_address(), sessions, streams);
  if (!status.ok()) return status;
  return (daemon.ResidentKb() - before) / sessions;
}

}  // namespace holdfast::bench
