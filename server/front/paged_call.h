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

#include "absl/status/statusor.h"
#include "server/engine_loop.h"
#include "server/front/front.h"

namespace holdfast::server {

// What is listed: the requests for its pages, and the messages made of them. Used under a lock.
class Listing {
 public:
  using Result = decltype(engine::Reply::result);

  virtual ~Listing() = default;
  // Asks for the next page, the first one at first.
  virtual engine::Command Ask(engine::CommandHead head) = 0;
  // Takes a page. False: the result is none.
  virtual bool Take(Result& result) = 0;
  // What is left of the page, as much as a message should have; nullopt: nothing.
  virtual std::optional<grpc::ByteBuffer> NextMessage() = 0;
  // Whether the page was the last one.
  virtual bool complete() const = 0;
};

// The keys of a ListRequest, the sessions of a ListSessionsRequest.
absl::StatusOr<std::unique_ptr<Listing>> ListKeys(const Front& front,
                                                  const grpc::ByteBuffer& request);
absl::StatusOr<std::unique_ptr<Listing>> ListSessions(const grpc::ByteBuffer& request);

// Either waits for a page of the engine or for a write of gRPC, never for both.
class PagedCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public EventSink {
 public:
  // A failure is the call's answer.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(
      const Front& front, grpc::CallbackServerContext* context,
      absl::StatusOr<std::unique_ptr<Listing>> listing);

  bool Deliver(absl::Span<engine::Event> events) override;

 private:
  enum class State { kAsking, kWriting, kFinished };

  PagedCall(const Front& front, grpc::CallbackServerContext* context);

  void OnWriteDone(bool ok) override;
  void OnDone() override;
  void Begin(absl::StatusOr<std::unique_ptr<Listing>> listing);
  void Ask();
  void WriteNext();
  void End(const absl::Status& status);

  const Front& front_;
  grpc::CallbackServerContext* const context_;
  const uint64_t channel_;
  std::shared_ptr<PagedCall> self_;

  std::mutex mutex_;
  // Guarded by mutex_.
  State state_ = State::kAsking;
  std::unique_ptr<Listing> listing_;
  std::optional<absl::Status> end_;
  grpc::ByteBuffer outgoing_;
};

}  // namespace holdfast::server
