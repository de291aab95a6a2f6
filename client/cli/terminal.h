// SPDX-License-Identifier: Apache-2.0
//
// The terminal belongs to one process group at a time: the one that may read it
// and that Ctrl-C reaches. While a command runs that is the command's.
#pragma once

#include <sys/types.h>

namespace holdfast::cli {

// Whether standard input is a terminal whose foreground group is ours.
bool OwnsTerminal();

// Lends the terminal to `group` / takes it back. SIGTTOU must be blocked.
void LendTerminal(pid_t group);
void TakeTerminalBack();

}  // namespace holdfast::cli
