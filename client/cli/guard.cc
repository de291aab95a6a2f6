// SPDX-License-Identifier: Apache-2.0
#include "client/cli/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "client/lib/boot_timer.h"

namespace holdfast::cli {

// In memory that both processes share.
struct Guard::Shared {
  std::atomic<pid_t> group{0};
  std::atomic<int64_t> kill_at_ns{BootTime::Infinite().nanos()};
  std::atomic<bool> fired{false};
};

absl::StatusOr<Guard> Guard::Start() {
  void* const page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot share memory with the guard");
  auto* const shared = new (page) Shared;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start the guard");
  if (pid == 0) {
    close(ends[1]);
    Run(shared, ends[0]);
  }
  close(ends[0]);
  setpgid(pid, pid);
  return Guard(shared, ends[1], pid);
}

// After a fork of a process with threads only what is safe in a signal handler may be called.
void Guard::Run(Shared* shared, int pipe_fd) {
  setpgid(0, 0);  // what is meant for the others does not reach it
  const MachineClock clock;
  client::BootTimer timer;
  for (;;) {
    const BootTime kill_at = BootTime::FromNanos(shared->kill_at_ns);
    // Looks now and then: the deadline may have been set earlier in the meantime.
    timer.Arm(std::min(kill_at, clock.Now() + absl::Milliseconds(200)));
    pollfd fds[] = {{.fd = pipe_fd, .events = POLLIN, .revents = 0},
                    {.fd = timer.timer_fd(), .events = POLLIN, .revents = 0}};
    poll(fds, 2, -1);
    char dismissed = 0;
    const bool told = fds[0].revents != 0;
    if (told && read(pipe_fd, &dismissed, 1) == 1) _exit(0);
    const bool late = BootTime::FromNanos(shared->kill_at_ns) <= clock.Now();
    if (!told && !late) continue;
    const pid_t group = shared->group;
    if (group > 0) {
      shared->fired = true;
      kill(-group, SIGKILL);
    }
    if (told) _exit(0);
    shared->kill_at_ns = BootTime::Infinite().nanos();
  }
}

Guard::Guard(Shared* shared, int pipe_fd, pid_t pid)
    : shared_(shared), pipe_fd_(pipe_fd), pid_(pid) {}

Guard::Guard(Guard&& other) noexcept
    : shared_(std::exchange(other.shared_, nullptr)), pipe_fd_(other.pipe_fd_), pid_(other.pid_) {}

Guard::~Guard() {
  if (shared_ == nullptr) return;
  [[maybe_unused]] const ssize_t written = write(pipe_fd_, "x", 1);
  close(pipe_fd_);
  waitpid(pid_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

void Guard::Watch(pid_t group) { shared_->group = group; }

void Guard::SetDeadline(BootTime kill_at) { shared_->kill_at_ns = kill_at.nanos(); }

bool Guard::fired() const { return shared_->fired; }

}  // namespace holdfast::cli
