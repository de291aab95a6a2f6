// SPDX-License-Identifier: Apache-2.0
//
// One hiredis connection on a libuv loop, with hooks of our own. hiredis' own
// libuv adapter arms and disarms the poll handle for every command, which costs
// more than the command; here reading is always armed, a command only marks the
// socket as dirty, and Flush() writes once. Waiting for room to write is armed
// only where a write did not drain.
#pragma once

#include <hiredis/async.h>
#include <uv.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/store/redis/tls.h"

namespace holdfast::redis {

class AsyncSocket {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Called once the socket is connected (TLS goes on by itself).
    virtual void OnSocketConnected() = 0;
    // The socket is closed and every reply callback has been called; with what went wrong. It may
    // come from within any call below.
    virtual void OnSocketClosed(std::string why) = 0;
  };

  // `tls` may be null. Everything outlives the socket.
  AsyncSocket(uv_loop_t* loop, const TlsContext* tls, Listener* listener)
      : loop_(loop), tls_(tls), listener_(listener) {}
  // Closes at once; the listener hears nothing any more, reply callbacks get a null reply.
  ~AsyncSocket();
  AsyncSocket(const AsyncSocket&) = delete;
  AsyncSocket& operator=(const AsyncSocket&) = delete;

  // Begin to connect; only while closed. A failure may be known at once.
  absl::Status ConnectTcp(const std::string& address, int port);
  absl::Status ConnectUnix(const std::string& path);

  // Puts a command in RESP into the output. False: the socket is closing, `fn` will not be called.
  bool Append(absl::string_view wire, redisCallbackFn* fn, void* data);

  // Writes what was appended. In a reply callback it is a no-op: output goes out after it anyway.
  void Flush();

  // Closes now, or right after the reply callback that calls this.
  void Close(std::string why);

  Listener* listener() const { return listener_; }
  bool open() const { return context_ != nullptr; }

 private:
  struct Poll {
    uv_poll_t handle;
    AsyncSocket* socket;  // null: the context is gone, the handle is closing
  };

  absl::Status Attach(redisAsyncContext* context);
  void Arm(int events);
  bool in_callback() const { return (context_->c.flags & REDIS_IN_CALLBACK) != 0; }

  static void OnPoll(uv_poll_t* handle, int status, int events);
  static void OnConnect(redisAsyncContext* context, int status);
  static void OnFreed(void* data);
  static void AddWrite(void* data);
  static void DelWrite(void* data);
  static void Cleanup(void* data);

  uv_loop_t* const loop_;
  const TlsContext* const tls_;
  Listener* listener_;
  redisAsyncContext* context_ = nullptr;  // freed by hiredis, which then calls OnFreed
  Poll* poll_ = nullptr;                  // freed by its close callback
  int armed_ = 0;                         // UV_READABLE, UV_WRITABLE
  bool dirty_ = false;                    // output may be waiting for Flush()
  bool in_io_ = false;                    // hiredis reads or writes
  std::string why_;
};

}  // namespace holdfast::redis
