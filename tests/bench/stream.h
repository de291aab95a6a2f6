// SPDX-License-Identifier: Apache-2.0
//
// A session as lean as gRPC allows: one thread, one completion queue for all streams of a load, and
// messages that are used again. What a load measures should be the daemon.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "holdfast/v1/lock.grpc.pb.h"

namespace holdfast::bench {

// Every channel made here is a connection of its own.
std::shared_ptr<grpc::Channel> Connect(const std::string& address);

// The one thread's: whoever calls RunUntil carries out what its streams are told.
class Loop {
 public:
  Loop() = default;
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Works until `done`, asked after each event. UNAVAILABLE: a stream broke, or nothing at all
  // happened for ten seconds.
  absl::Status RunUntil(const std::function<bool()>& done);

 private:
  friend class Stream;
  // Carries out one event; false: there was none for too long.
  bool Next();

  grpc::CompletionQueue queue_;
  absl::Status broken_;
};

class Stream {
 public:
  // Called for every event but `opened`.
  using Handler = std::function<void(const v1::SessionEvent&)>;

  // Opens a session that needs no pings while a benchmark runs.
  Stream(Loop* loop, const std::shared_ptr<grpc::Channel>& channel, Handler handler);
  // Ends the session, and waits until that is done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool opened() const { return opened_; }

  // A command with its request id, to be filled in; it goes out with all others that are ready when
  // the events of a message have been handled, or with Flush().
  v1::SessionCommand& Add();
  void Flush();

 private:
  friend class Loop;
  struct Step {
    Stream* stream;
    void (Stream::*done)(bool ok);
  };

  void OnStarted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void Break();
  void Read();

  Loop* const loop_;
  const Handler handler_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::LockService::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::SessionRequest, v1::SessionResponse>> rpc_;
  Step started_{this, &Stream::OnStarted};
  Step read_{this, &Stream::OnRead};
  Step written_{this, &Stream::OnWritten};
  int under_way_ = 0;
  bool writing_ = false;
  bool opened_ = false;
  bool closing_ = false;
  uint64_t last_id_ = 0;
  v1::SessionRequest next_;
  v1::SessionRequest outgoing_;
  v1::SessionResponse incoming_;
};

}  // namespace holdfast::bench
