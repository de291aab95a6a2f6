// SPDX-License-Identifier: Apache-2.0
//
// A watch: events go out as fast as the client reads them, what came meanwhile in one message. A
// client that is too far behind loses what it has not read and is told so.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "server/engine_loop.h"
#include "server/front/front.h"

namespace holdfast::server {

class WatchCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public EventSink {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(const Front& front,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer& request);

  bool Deliver(absl::Span<engine::Event> events) override;

 private:
  WatchCall(const Front& front, grpc::CallbackServerContext* context);

  void Begin(const grpc::ByteBuffer& request);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // The rest with mutex_ held.
  void Take(engine::Event& event);
  // Starts what is to be done next, if nothing is under way.
  void Proceed();
  grpc::ByteBuffer NextMessage();

  const Front& front_;
  grpc::CallbackServerContext* const context_;
  const uint64_t channel_;
  std::shared_ptr<WatchCall> self_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<engine::Watched> pending_;
  bool begins_ = false;  // the first message is due
  bool writing_ = false;
  bool finished_ = false;
  std::optional<absl::Status> end_;  // finish with it when no write is under way
  grpc::ByteBuffer outgoing_;
};

}  // namespace holdfast::server
