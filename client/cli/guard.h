// SPDX-License-Identifier: Apache-2.0
//
// A small process beside the command line that kills the command's process
// group when the command line cannot: because it was killed itself, or is
// stopped (SIGSTOP, a debugger) while the lock's validity runs out. So nothing
// works on under a lock that its holder no longer keeps.
//
// It inherits the connection to the daemon. When the command line is killed,
// the connection therefore closes, and the daemon frees the lock, only after
// the group was killed.
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "src/base/clock.h"

namespace holdfast::cli {

class Guard {
 public:
  // Forks. Call it when the lock is held, before the command is started.
  static absl::StatusOr<Guard> Start();
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  // Dismisses the guard.
  ~Guard();

  // The group to kill; 0: none.
  void Watch(pid_t group);
  // Kill it at that time, unless told another time before.
  void SetDeadline(BootTime kill_at);
  // Whether it had to.
  bool fired() const;

 private:
  struct Shared;

  Guard(Shared* shared, int pipe_fd, pid_t pid);
  [[noreturn]] static void Run(Shared* shared, int pipe_fd);

  Shared* shared_;
  int pipe_fd_;
  pid_t pid_;
};

}  // namespace holdfast::cli
