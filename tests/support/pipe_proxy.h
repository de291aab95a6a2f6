// SPDX-License-Identifier: Apache-2.0
//
// Stands between a client and a server on Unix sockets, and can keep what a
// client sends from arriving until later, even after the client has gone: what
// a slow network or a stopped server does.
#pragma once

#include <uv.h>

#include <list>
#include <string>

#include "tests/support/test_loop.h"

namespace holdfast::testing {

class PipeProxy {
 public:
  PipeProxy(TestLoop* loop, const std::string& listen_path, const std::string& target_path);
  ~PipeProxy();
  PipeProxy(const PipeProxy&) = delete;
  PipeProxy& operator=(const PipeProxy&) = delete;

  // From now on, what comes over the connections that exist is kept back; new ones are not
  // concerned.
  void HoldBack();
  // Lets it go, to servers that still listen. Answers how many bytes that were.
  size_t Deliver();

 private:
  struct Link {
    PipeProxy* proxy;
    uv_pipe_t client;
    uv_pipe_t server;
    std::string held;
    bool holding = false;
    bool closed = false;
    int open_handles = 2;
  };

  void OnClient();
  static void Forward(uv_pipe_t* to, std::string bytes);
  static void Close(Link* link);

  TestLoop* const loop_;
  const std::string target_path_;
  uv_pipe_t* listener_;
  std::list<Link*> links_;  // freed by their last close callback
};

}  // namespace holdfast::testing
