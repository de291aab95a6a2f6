// SPDX-License-Identifier: Apache-2.0
#include "client/cli/terminal.h"

#include <unistd.h>

namespace holdfast::cli {

bool OwnsTerminal() { return isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void LendTerminal(pid_t group) { tcsetpgrp(STDIN_FILENO, group); }

void TakeTerminalBack() { tcsetpgrp(STDIN_FILENO, getpgrp()); }

}  // namespace holdfast::cli
