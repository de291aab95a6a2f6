// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pipe_proxy.h"

#include <utility>

namespace holdfast::testing {
namespace {

void Allocate(uv_handle_t*, size_t size, uv_buf_t* buffer) {
  *buffer = uv_buf_init(new char[size], static_cast<unsigned>(size));
}

uv_stream_t* Stream(uv_pipe_t* pipe) { return reinterpret_cast<uv_stream_t*>(pipe); }

}  // namespace

PipeProxy::PipeProxy(TestLoop* loop, const std::string& listen_path, const std::string& target_path)
    : loop_(loop), target_path_(target_path), listener_(new uv_pipe_t) {
  uv_pipe_init(loop_->uv(), listener_, 0);
  listener_->data = this;
  uv_pipe_bind(listener_, listen_path.c_str());
  uv_listen(Stream(listener_), 16, [](uv_stream_t* listener, int status) {
    if (status == 0) static_cast<PipeProxy*>(listener->data)->OnClient();
  });
}

PipeProxy::~PipeProxy() {
  for (Link* link : std::list<Link*>(links_)) Close(link);
  uv_close(reinterpret_cast<uv_handle_t*>(listener_),
           [](uv_handle_t* h) { delete reinterpret_cast<uv_pipe_t*>(h); });
}

void PipeProxy::OnClient() {
  auto* link = new Link;
  link->proxy = this;
  links_.push_back(link);
  for (uv_pipe_t* pipe : {&link->client, &link->server}) {
    uv_pipe_init(loop_->uv(), pipe, 0);
    pipe->data = link;
  }
  uv_accept(Stream(listener_), Stream(&link->client));
  auto* request = new uv_connect_t;
  uv_pipe_connect(request, &link->server, target_path_.c_str(), [](uv_connect_t* done, int status) {
    auto* connected = static_cast<Link*>(done->handle->data);
    delete done;
    if (connected->closed) return;
    if (status != 0) return Close(connected);
    uv_read_start(Stream(&connected->client), Allocate,
                  [](uv_stream_t* stream, ssize_t n, const uv_buf_t* buffer) {
                    auto* from = static_cast<Link*>(stream->data);
                    const std::string bytes(buffer->base, n > 0 ? static_cast<size_t>(n) : 0);
                    delete[] buffer->base;
                    if (from->holding) {
                      from->held += bytes;
                      if (n < 0) uv_read_stop(stream);  // the server does not hear of it yet
                    } else if (n < 0) {
                      Close(from);
                    } else {
                      Forward(&from->server, bytes);
                    }
                  });
    uv_read_start(Stream(&connected->server), Allocate,
                  [](uv_stream_t* stream, ssize_t n, const uv_buf_t* buffer) {
                    auto* from = static_cast<Link*>(stream->data);
                    const std::string bytes(buffer->base, n > 0 ? static_cast<size_t>(n) : 0);
                    delete[] buffer->base;
                    if (n < 0) return Close(from);
                    if (!from->holding) Forward(&from->client, bytes);
                  });
  });
}

void PipeProxy::HoldBack() {
  for (Link* link : links_) link->holding = true;
}

size_t PipeProxy::Deliver() {
  size_t bytes = 0;
  for (Link* link : links_) {
    if (!link->holding || link->closed) continue;
    bytes += link->held.size();
    Forward(&link->server, std::exchange(link->held, ""));
  }
  return bytes;
}

void PipeProxy::Forward(uv_pipe_t* to, std::string bytes) {
  struct Write {
    uv_write_t request;
    std::string bytes;
  };
  auto* write = new Write{{}, std::move(bytes)};
  write->request.data = write;
  uv_buf_t buffer = uv_buf_init(write->bytes.data(), static_cast<unsigned>(write->bytes.size()));
  uv_write(&write->request, Stream(to), &buffer, 1,
           [](uv_write_t* request, int) { delete static_cast<Write*>(request->data); });
}

void PipeProxy::Close(Link* link) {
  if (link->closed) return;
  link->closed = true;
  link->proxy->links_.remove(link);
  for (uv_pipe_t* pipe : {&link->client, &link->server}) {
    uv_close(reinterpret_cast<uv_handle_t*>(pipe), [](uv_handle_t* handle) {
      auto* closed = static_cast<Link*>(handle->data);
      if (--closed->open_handles == 0) delete closed;
    });
  }
}

}  // namespace holdfast::testing
