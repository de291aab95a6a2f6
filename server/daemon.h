// SPDX-License-Identifier: Apache-2.0
//
// The daemon's life: start the store, listen, say so, wait for a signal, drain, end.
#pragma once

#include <string>

#include "server/options.h"

namespace holdfast::server {

// Serves until SIGTERM or SIGINT. The first one drains: no new work, holders are told and have
// --drain-limit; a second one ends at once. Answers the exit code: 0, or 69 where the store or an
// address cannot be used at start. `program` is argv[0]: the hints that are printed at the start
// name the command line next to it. Called once in a process, from its main thread, before other
// threads.
int RunDaemon(const Options& options, const std::string& program);

}  // namespace holdfast::server
