// SPDX-License-Identifier: Apache-2.0
//
// A holdfastd of the benchmark's own, and what it costs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast::bench {

class DaemonProcess {
 public:
  // Starts `program` with --store and two --listen addresses, and waits until it serves. Its
  // socket, its folder and its log lie in `folder`, which exists.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const std::string& program,
                                                              const std::string& folder,
                                                              const std::string& store);
  // Kills it.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // As gRPC's clients want them.
  const std::string& unix_address() const { return addresses_[0]; }
  const std::string& tcp_address() const { return addresses_[1]; }

  // From /proc; 0 when it has ended.
  double ResidentKb() const;
  double CpuSeconds() const;

 private:
  DaemonProcess() = default;

  pid_t pid_ = -1;
  int out_ = -1;  // open as long as the daemon may write to it
  std::vector<std::string> addresses_;
};

}  // namespace holdfast::bench
