// SPDX-License-Identifier: Apache-2.0
#include "client/cli/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "client/cli/exit_codes.h"

namespace holdfast::cli {

Signals::Signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGCHLD}) {
    sigaddset(&taken, signal);
  }
  sigset_t blocked = taken;
  sigaddset(&blocked, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &blocked, &original_);
  fd_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() { close(fd_); }

std::optional<int> Signals::Take() {
  signalfd_siginfo info{};
  if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void DieOf(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  _exit(kExitSignalBase + signal);
}

}  // namespace holdfast::cli
