// SPDX-License-Identifier: Apache-2.0
//
// One session's stream. Commands are decoded on gRPC's thread and posted a message at a time;
// whatever is ready for the client goes into one message, one write at a time, and what comes
// meanwhile into the next. So a busy stream coalesces by itself, without timers.
//
// How a stream ended: the client's half-close or cancel ends the session at once (kByClient). gRPC
// reports a connection that its peer closed in the same way as one that our own keepalive gave up
// on. They are told apart by the last message: our side cannot have given up within the keepalive
// timeout of one, so then it was the peer; else the client counts as silent and has its ttl. Behind
// a proxy only a half-close counts as the client's word.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/v1/session.pb.h"
#include "server/engine_loop.h"
#include "server/front/decode.h"
#include "server/front/front.h"
#include "server/front/id_ranges.h"

namespace holdfast::server {

class SessionStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            public EventSink {
 public:
  // What the handler returns to gRPC. The stream lives until gRPC is done with it and the loop has
  // let go of it.
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(
      const Front& front, grpc::CallbackServerContext* context);

  bool Deliver(absl::Span<engine::Event> events) override;

 private:
  SessionStream(const Front& front, grpc::CallbackServerContext* context);

  // ---- Reading (session_commands.cc). One message at a time, on gRPC's threads.
  void OnReadDone(bool ok) override;
  absl::Status OnMessage();
  absl::Status OnOpen(v1::SessionRequest& message);
  // Adds the message's commands to `batch`; what is refused is answered here.
  void TakeCommands(v1::SessionRequest& message, const std::vector<BadCommand>& bad, Batch& batch);
  absl::Status CheckRequestId(uint64_t request_id);
  absl::StatusOr<engine::Command> ToCommand(v1::SessionCommand& command);
  void PostCommands(Batch batch);

  // ---- Writing and the end (session_stream.cc).
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void OnOpened(const engine::SessionOpened& opened);
  // An answer that needs no engine.
  void Refuse(uint64_t request_id, const absl::Status& status);
  // Has the engine end the session when too much is unsent. With mutex_ held.
  void GiveUpOnSlowReader();
  void EndWith(const absl::Status& status);
  void PostClosed(engine::StreamEnd how);
  // How the stream ended, if it was cancelled or its connection closed.
  engine::StreamEnd HowItBroke() const;
  bool HeardLately() const;
  // Starts what is to be done next, if nothing is under way. Called with `lock` held, lets it go.
  void Proceed(std::unique_lock<std::mutex> lock);
  grpc::ByteBuffer NextMessage();

  const Front& front_;
  grpc::CallbackServerContext* const context_;
  const uint64_t channel_;
  std::shared_ptr<SessionStream> self_;
  std::atomic<int64_t> last_heard_ns_;

  // The reading side's; handed to the loop's thread between posting OpenSession and reading on.
  grpc::ByteBuffer incoming_;
  BootTime received_;  // when the message at hand was noticed
  IdRanges request_ids_;
  bool open_seen_ = false;
  Batch early_;             // commands that came with `open`: posted when the session has its id
  std::string session_id_;  // empty until it is opened

  // The writing side's, while writing_ says that a write is under way.
  grpc::ByteBuffer outgoing_;
  std::vector<engine::Event> sending_;
  size_t sent_ = 0;  // of sending_

  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<engine::Event> pending_;
  size_t unsent_ = 0;     // in pending_ and sending_
  size_t in_flight_ = 0;  // commands that the engine has not answered
  bool writing_ = false;
  bool finished_ = false;
  bool closed_ = false;              // ChannelClosed was posted
  bool slow_ = false;                // SlowReader was posted
  std::optional<absl::Status> end_;  // finish with it when everything before it is written
};

// The `opened` event.
void OpenedToMessage(const Front& front, const engine::SessionOpened& opened,
                     v1::SessionOpened& to);

}  // namespace holdfast::server
