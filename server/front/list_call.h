// SPDX-License-Identifier: Apache-2.0
//
// A listing: pages are asked of the engine one after the other, as fast as the client reads them.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "holdfast/v1/lock.pb.h"
#include "server/engine_loop.h"
#include "server/front/front.h"

namespace holdfast::server {

// Either waits for a page of the engine or for a write of gRPC, never for both.
class ListCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public EventSink {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(const Front& front,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer& request);

  bool Deliver(absl::Span<engine::Event> events) override;

 private:
  enum class State { kAsking, kWriting, kFinished };

  ListCall(const Front& front, grpc::CallbackServerContext* context);

  void OnWriteDone(bool ok) override;
  void OnDone() override;
  void Begin(const grpc::ByteBuffer& request);
  void Ask();
  void WriteNext();
  void End(const absl::Status& status);

  const Front& front_;
  grpc::CallbackServerContext* const context_;
  const uint64_t channel_;
  std::shared_ptr<ListCall> self_;

  std::mutex mutex_;
  // Guarded by mutex_.
  State state_ = State::kAsking;
  v1::ListRequest request_;
  std::string cursor_;
  engine::ListAnswer page_;
  size_t written_ = 0;  // of page_
  std::optional<absl::Status> end_;
  grpc::ByteBuffer outgoing_;
};

}  // namespace holdfast::server
