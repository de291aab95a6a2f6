// SPDX-License-Identifier: Apache-2.0
//
// What a session costs that does nothing.
#pragma once

#include "absl/status/statusor.h"
#include "tests/bench/daemon_process.h"

namespace holdfast::bench {

// Opens `sessions` sessions, 100 to a connection, and answers by how many KB each made the daemon
// grow. The daemon should be fresh: one that has been busy has memory to give away.
absl::StatusOr<double> KbPerIdleSession(const DaemonProcess& daemon, int sessions);

}  // namespace holdfast::bench
