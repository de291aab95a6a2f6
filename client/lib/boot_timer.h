// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a point on the boot clock, or for somebody's Wake(), whichever is
// first. Unlike a condition variable's, such a wait ends on time after the
// machine was suspended.
#pragma once

#include "src/base/clock.h"

namespace holdfast::client {

class BootTimer {
 public:
  BootTimer();
  ~BootTimer();
  BootTimer(const BootTimer&) = delete;
  BootTimer& operator=(const BootTimer&) = delete;

  // Returns at `until`, after a Wake(), or now and then for no reason. One thread.
  void WaitUntil(BootTime until);
  // Ends a wait, or the next one. Any thread.
  void Wake();

  // For a poll() of one's own: sets when timer_fd() becomes readable. The other one does after
  // Wake().
  void Arm(BootTime until);
  int timer_fd() const { return timer_fd_; }
  int wake_fd() const { return wake_fd_; }
  // Takes what made them readable.
  void Drain();

 private:
  const int timer_fd_;
  const int wake_fd_;
};

}  // namespace holdfast::client
