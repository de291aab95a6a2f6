// SPDX-License-Identifier: Apache-2.0
//
// Signals as something that poll() waits for. They are blocked for the whole
// process, so the object must be made before any other thread is started.
#pragma once

#include <signal.h>

#include <optional>

namespace holdfast::cli {

class Signals {
 public:
  // Takes TERM, INT, HUP, QUIT, USR1, USR2, CONT and CHLD, except those that this process was
  // started to ignore (nohup). TTOU is blocked, so that the terminal can be taken back.
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // The next one that came; nullopt: none.
  std::optional<int> Take();

  // What was blocked before: for the command.
  const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t original_;
  int fd_;
};

// Ends this process as the signal would have.
[[noreturn]] void DieOf(int signal);

}  // namespace holdfast::cli
