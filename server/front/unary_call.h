// SPDX-License-Identifier: Apache-2.0
//
// One unary call: one command to the engine, one answer back.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "server/engine_loop.h"
#include "server/front/front.h"
#include "src/engine/commands.h"

namespace holdfast::server {

// Lives until gRPC is done with it and the loop has let go of it. Finished once: by the engine's
// answer (on the loop's thread) or by the client's going away (on one of gRPC's).
//
// An acquire whose client left takes itself out of the line. If the grant was under way to the
// client already, it is given back here, unless it has a command_id: then its client may ask again,
// and until it does the hold is bounded by its lease or its session.
class UnaryCall final : public grpc::ServerUnaryReactor, public EventSink {
 public:
  using Result = decltype(engine::Reply::result);
  // Makes the answer's bytes of a result that is no failure.
  using Encoder = std::function<grpc::ByteBuffer(const Result&)>;

  // Makes the command, given its head; a failure is the call's answer.
  template <typename Command>
  using CommandMaker = std::function<absl::StatusOr<Command>(engine::CommandHead)>;

  // What a handler returns to gRPC: a call that is under way.
  template <typename Command>
  static grpc::ServerUnaryReactor* Start(const Front& front, grpc::CallbackServerContext* context,
                                         grpc::ByteBuffer* response,
                                         const CommandMaker<Command>& make, Encoder encode);

  bool Deliver(absl::Span<engine::Event> events) override;

 private:
  enum class End { kNotYet, kAnswered, kCancelled };

  UnaryCall(const Front& front, grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
            Encoder encode);

  void OnCancel() override;
  void OnDone() override;
  void Send(absl::StatusOr<engine::Command> command);
  void Answer(const absl::Status& status);
  void Undo(const std::vector<engine::Grant>& grants);

  const Front& front_;
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
  const Encoder encode_;
  const uint64_t channel_;
  bool retryable_ = false;  // has a command_id; set before the command is posted
  std::shared_ptr<UnaryCall> self_;
  // Whoever changes it finishes the call, and may use context_ and response_ until then.
  std::atomic<End> end_{End::kNotYet};
  // Written by whoever made end_ kAnswered, before it finishes the call.
  std::vector<engine::Grant> granted_;
};

template <typename Command>
grpc::ServerUnaryReactor* UnaryCall::Start(const Front& front, grpc::CallbackServerContext* context,
                                           grpc::ByteBuffer* response,
                                           const CommandMaker<Command>& make, Encoder encode) {
  // gRPC calls nothing before it has the reactor, so the call cannot be done before the return.
  std::shared_ptr<UnaryCall> call(new UnaryCall(front, context, response, std::move(encode)));
  call->self_ = call;
  absl::StatusOr<Command> command = make(HeadFor(front, call->channel_, 1));
  if constexpr (std::is_same_v<Command, engine::Acquire> ||
                std::is_same_v<Command, engine::AcquireAll>) {
    call->retryable_ = command.ok() && !command->command_id.empty();
  }
  if (command.ok()) {
    call->Send(engine::Command(*std::move(command)));
  } else {
    call->Send(command.status());
  }
  return call.get();
}

}  // namespace holdfast::server
