// SPDX-License-Identifier: Apache-2.0
#include "server/signals.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>

namespace holdfast::server {
namespace {

// Ends the thread's wait; nothing else sends it to the daemon.
constexpr int kEndWaiting = SIGUSR2;

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, kEndWaiting);
  return set;
}

}  // namespace

SignalThread::SignalThread(std::function<void(int)> on_signal) : on_signal_(std::move(on_signal)) {
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = Watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { Wait(); });
}

SignalThread::~SignalThread() {
  pthread_kill(thread_.native_handle(), kEndWaiting);
  thread_.join();
}

void SignalThread::Wait() {
  const sigset_t set = Watched();
  bool asked_before = false;
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0 || signal == kEndWaiting) return;
    if (asked_before) std::_Exit(128 + signal);
    asked_before = true;
    on_signal_(signal);
  }
}

}  // namespace holdfast::server
