// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/async_socket.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast::redis {
namespace {

absl::Status Unreachable(absl::string_view message) {
  return Fail(Reason::kStoreUnreachable, "", message);
}

}  // namespace

AsyncSocket::~AsyncSocket() {
  listener_ = nullptr;
  if (context_ != nullptr) redisAsyncFree(context_);
}

absl::Status AsyncSocket::ConnectTcp(const std::string& address, int port) {
  redisOptions options = {};
  REDIS_OPTIONS_SET_TCP(&options, address.c_str(), port);
  return Attach(redisAsyncConnectWithOptions(&options));
}

absl::Status AsyncSocket::ConnectUnix(const std::string& path) {
  redisOptions options = {};
  REDIS_OPTIONS_SET_UNIX(&options, path.c_str());
  return Attach(redisAsyncConnectWithOptions(&options));
}

absl::Status AsyncSocket::Attach(redisAsyncContext* context) {
  if (context == nullptr) return Unreachable("out of memory");
  if (context->err != 0) {
    absl::Status status = Unreachable(context->errstr);
    redisAsyncFree(context);
    return status;
  }
  auto* poll = new Poll{{}, this};
  if (int error = uv_poll_init_socket(loop_, &poll->handle, context->c.fd); error != 0) {
    delete poll;
    redisAsyncFree(context);
    return Unreachable(uv_strerror(error));
  }
  poll->handle.data = poll;
  poll_ = poll;
  context_ = context;
  context->data = this;
  context->dataCleanup = OnFreed;
  context->ev.data = poll;
  context->ev.addWrite = AddWrite;
  context->ev.delWrite = DelWrite;
  context->ev.cleanup = Cleanup;
  why_.clear();
  dirty_ = false;
  armed_ = 0;
  if (context->c.connection_type == REDIS_CONN_TCP) redisEnableKeepAlive(&context->c);
  redisAsyncSetConnectCallbackNC(context,
                                 [](redisAsyncContext* c, int status) { OnConnect(c, status); });
  Arm(UV_READABLE | UV_WRITABLE);
  return absl::OkStatus();
}

void AsyncSocket::Arm(int events) {
  if (armed_ == events) return;
  armed_ = events;
  uv_poll_start(&poll_->handle, events, OnPoll);
}

void AsyncSocket::OnPoll(uv_poll_t* handle, int status, int events) {
  auto* poll = static_cast<Poll*>(handle->data);
  if (status != 0) events = UV_READABLE | UV_WRITABLE;  // hiredis finds the error itself
  if ((events & UV_READABLE) != 0 && poll->socket != nullptr) {
    AsyncSocket* socket = poll->socket;
    socket->in_io_ = true;
    redisAsyncHandleRead(socket->context_);
    if (poll->socket == nullptr) return;
    socket->in_io_ = false;
  }
  if (poll->socket != nullptr && ((events & UV_WRITABLE) != 0 || poll->socket->dirty_)) {
    poll->socket->dirty_ = true;
    poll->socket->Flush();
  }
}

void AsyncSocket::Flush() {
  if (context_ == nullptr || !dirty_ || in_callback()) return;
  dirty_ = false;
  Poll* poll = poll_;
  in_io_ = true;
  redisAsyncHandleWrite(context_);
  if (poll->socket != nullptr) in_io_ = false;
}

bool AsyncSocket::Append(absl::string_view wire, redisCallbackFn* fn, void* data) {
  return context_ != nullptr &&
         redisAsyncFormattedCommand(context_, fn, data, wire.data(), wire.size()) == REDIS_OK;
}

void AsyncSocket::Close(std::string why) {
  if (context_ == nullptr) return;
  if (why_.empty()) why_ = std::move(why);
  redisAsyncFree(context_);
}

void AsyncSocket::OnConnect(redisAsyncContext* context, int status) {
  auto* self = static_cast<AsyncSocket*>(context->data);
  if (status != REDIS_OK) return;  // OnFreed follows, with the reason in the context
  if (self->tls_ != nullptr) {
    absl::Status tls = self->tls_->Begin(&context->c);
    if (!tls.ok()) return self->Close(std::string(tls.message()));
  }
  if (self->listener_ != nullptr) self->listener_->OnSocketConnected();
}

void AsyncSocket::OnFreed(void* data) {
  auto* self = static_cast<AsyncSocket*>(data);
  std::string why = std::move(self->why_);
  if (why.empty() && self->context_->errstr != nullptr) why = self->context_->errstr;
  if (why.empty()) why = "the connection was closed";
  self->context_ = nullptr;
  self->in_io_ = false;
  self->armed_ = 0;
  if (self->listener_ != nullptr) self->listener_->OnSocketClosed(std::move(why));
}

// hiredis asks for a write whenever there is output. Only what a read or write of its own could not
// get rid of needs polling; commands wait for Flush().
void AsyncSocket::AddWrite(void* data) {
  AsyncSocket* self = static_cast<Poll*>(data)->socket;
  if (self == nullptr) return;
  if (self->in_io_ && !self->in_callback()) {
    self->Arm(UV_READABLE | UV_WRITABLE);
  } else {
    self->dirty_ = true;
  }
}

void AsyncSocket::DelWrite(void* data) {
  AsyncSocket* self = static_cast<Poll*>(data)->socket;
  if (self != nullptr) self->Arm(UV_READABLE);
}

void AsyncSocket::Cleanup(void* data) {
  auto* poll = static_cast<Poll*>(data);
  poll->socket->poll_ = nullptr;
  poll->socket = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll->handle),
           [](uv_handle_t* handle) { delete static_cast<Poll*>(handle->data); });
}

}  // namespace holdfast::redis
