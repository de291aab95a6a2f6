// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGINT as calls on a thread of their own, where everything is allowed.
#pragma once

#include <functional>
#include <thread>

namespace holdfast::server {

class SignalThread {
 public:
  // Blocks both signals in this thread, and so in all that it starts from here on; SIGPIPE is
  // ignored. To be made before other threads. `on_signal` is called for the first signal; a second
  // one ends the process at once, with 128 + its number.
  explicit SignalThread(std::function<void(int signal)> on_signal);
  // Waits for the thread, not for a signal.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void Wait();

  const std::function<void(int)> on_signal_;
  std::thread thread_;
};

}  // namespace holdfast::server
