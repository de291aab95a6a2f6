// SPDX-License-Identifier: Apache-2.0
#include "client/lib/boot_timer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace holdfast::client {
namespace {

void DrainCounter(int fd) {
  uint64_t count = 0;
  while (read(fd, &count, sizeof count) > 0) {
  }
}

}  // namespace

BootTimer::BootTimer()
    : timer_fd_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

BootTimer::~BootTimer() {
  close(timer_fd_);
  close(wake_fd_);
}

void BootTimer::Arm(BootTime until) {
  itimerspec spec{};  // all zero: never
  if (!until.is_infinite()) {
    const int64_t nanos = std::max<int64_t>(until.nanos(), 1);
    spec.it_value.tv_sec = nanos / 1'000'000'000;
    spec.it_value.tv_nsec = nanos % 1'000'000'000;
  }
  timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void BootTimer::WaitUntil(BootTime until) {
  Arm(until);
  pollfd fds[] = {{.fd = timer_fd_, .events = POLLIN, .revents = 0},
                  {.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  poll(fds, 2, -1);
  Drain();
}

void BootTimer::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void BootTimer::Drain() {
  DrainCounter(timer_fd_);
  DrainCounter(wake_fd_);
}

}  // namespace holdfast::client
