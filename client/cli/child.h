// SPDX-License-Identifier: Apache-2.0
//
// A command in a process group of its own.
//
// Threading: start it from the main thread, which must live as long as it does:
// the command is killed when the thread that started it ends (PR_SET_PDEATHSIG).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace holdfast::cli {

struct ChildOptions {
  std::vector<std::string> command;      // looked up in PATH; not empty
  std::vector<std::string> environment;  // all of it, as NAME=value
  sigset_t signal_mask;
  bool lend_terminal = false;
  bool dies_with_parent = true;
};

class Child {
 public:
  // nullopt and `*exec_errno`: there is no such command, or it cannot be run.
  static absl::StatusOr<std::optional<Child>> Start(const ChildOptions& options, int* exec_errno);

  pid_t pid() const { return pid_; }  // also its group

  void Signal(int signal) const { kill(pid_, signal); }
  void SignalGroup(int signal) const { kill(-pid_, signal); }

  enum class Change { kNone, kStopped, kEnded };
  // Takes what happened to the command and to what is left of its group.
  Change Reap();
  // Its exit code as a shell has it, once it ended.
  int exit_code() const { return exit_code_; }
  // Whether the command and all others of its group have ended.
  bool IsGroupGone() const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace holdfast::cli
