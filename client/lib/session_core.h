// SPDX-License-Identifier: Apache-2.0
//
// The machinery of a session: gRPC's reactor on one side, callers that wait for
// answers on the other, and a thread that pings and watches the clock. Whatever
// is ready to be sent goes into one message, one write at a time.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "client/lib/boot_timer.h"
#include "client/lib/hold_book.h"
#include "client/lib/session.h"
#include "holdfast/v1/lock.grpc.pb.h"

namespace holdfast::client {

class SessionCore final : public grpc::ClientBidiReactor<v1::SessionRequest, v1::SessionResponse> {
 public:
  SessionCore(std::shared_ptr<grpc::Channel> channel, SessionOptions options);
  // Ends the stream; returns when gRPC has let go of it.
  ~SessionCore() override;

  // Begins the stream and waits for `opened`.
  absl::Status Open();

  // Sends a command and waits for its reply at most `span`. Where none came: UNAVAILABLE, and an
  // acquire is taken back.
  absl::StatusOr<v1::SessionReply> Call(v1::SessionCommand command, absl::Duration span);

  std::optional<HoldBook::Names> NamesOf(const std::string& hold_id);
  bool IsHeld(const std::string& hold_id);
  BootTime ValidUntil(const std::string& hold_id);
  std::optional<Loss> LossOf(const std::string& hold_id);
  void Forget(const std::string& hold_id);

  // From a successful Open on.
  const v1::SessionOpened& opened() const { return opened_; }
  absl::Status end_status();
  const SessionOptions& options() const { return options_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Waiting {
    BootTime sent;
    bool is_acquire = false;
    std::optional<v1::SessionReply> reply;
  };

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnWritesDoneDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void OnEvent(v1::SessionEvent& event, BootTime now);
  void OnOpened(v1::SessionOpened& opened);
  void OnReply(v1::SessionReply& reply, BootTime now);
  void EnqueueRelease(const v1::Grant& grant);
  void OnPong(const v1::Pong& pong, BootTime now);

  // Puts a command into the next message; answers its request id.
  // Until `is_over`, or until this process has been waiting for `span`.
  void WaitPatiently(Lock& lock, absl::Duration span, const std::function<bool()>& is_over);
  uint64_t Enqueue(v1::SessionCommand command);
  // These let go of the lock: sends what is queued; tells the listener what happened.
  void Send(Lock lock);
  void Tell(Lock lock);
  // Lets gRPC finish the stream once nothing more will be started on it from outside a reaction.
  void LetGoIfIdle();

  // Pings, and notices what is over.
  void WatchTheClock();
  BootTime NextPing() const;

  const SessionOptions options_;
  const MachineClock clock_;
  const std::unique_ptr<v1::LockService::Stub> stub_;
  grpc::ClientContext context_;
  BootTimer timer_;
  std::thread watcher_;
  BootTime open_sent_;
  v1::SessionResponse incoming_;  // of the read under way
  v1::SessionRequest outgoing_;   // of the write under way
  v1::SessionOpened opened_;      // written once, before Open returns

  std::mutex mutex_;
  std::condition_variable changed_;  // who waits: Open, Call and the destructor
  // Guarded by mutex_.
  v1::SessionRequest next_;  // what the next write takes along
  bool writing_ = false;     // a write, or the half-close, is under way
  bool closing_ = false;     // half-close when everything is written
  bool half_closed_ = false;
  bool reading_ = true;  // until a read fails: then gRPC is about to finish the stream
  bool holding_ = true;  // AddHold is in force
  bool done_ = false;
  absl::Status end_;
  bool is_open_ = false;
  uint64_t last_request_id_ = 0;
  BootTime last_ping_;
  std::map<uint64_t, Waiting> waiting_;
  std::map<uint64_t, BootTime> pings_;
  std::optional<HoldBook> book_;      // from `opened` on
  std::vector<SessionEvent> events_;  // for the listener
};

}  // namespace holdfast::client
