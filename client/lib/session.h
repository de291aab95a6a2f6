// SPDX-License-Identifier: Apache-2.0
//
// A session with a daemon: holds that live as long as this program does. The
// daemon renews them; this side pings, computes until when it may rely on each
// hold (validity.h), and says `lost` itself when nobody else does.
//
//   auto channel = holdfast::client::Connect("127.0.0.1:7420");
//   auto session = holdfast::client::Session::Open(*channel, {.client_name = "reports 1.0"});
//   if (!session.ok()) return session.status();
//   v1::AcquireRequest request;
//   request.set_key("reports/daily");
//   *request.mutable_wait() = holdfast::client::ToMessage(absl::Seconds(5));
//   auto answer = (*session)->Acquire(request);
//   if (!answer.ok()) return answer.status();                  // the daemon or its store is away
//   if (!answer->has_grant()) return Busy(answer->holders());  // somebody else holds it
//   const std::string hold = answer->grant().hold_id();
//   while (MoreToDo() && (*session)->IsHeld(hold)) DoSome(answer->grant().fencing_token());
//   (*session)->Release(hold);
//
// A hold that is lost once stays lost, whatever arrives later: stop working
// under it, then LostAck. Destroying the session releases what it still holds.
//
// Threading: all methods may be called from any thread. Acquire and the other
// commands block for their answer. on_event is called on a thread of the
// session's own; it must be quick and must not call commands.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/session.pb.h"
#include "src/base/clock.h"
#include "src/base/limits.h"

namespace holdfast::client {

// Why a hold ended without being released.
struct Loss {
  v1::LossReason reason = v1::LOSS_REASON_UNSPECIFIED;
  // Whether the daemon said so; otherwise its validity ended by this side's clock.
  bool told = false;
};

struct SessionEvent {
  enum class Kind {
    kLost,       // `hold_id`
    kContended,  // `hold_id`: somebody waits for its key
    kDraining,   // the daemon shuts down within `limit`
    kEnded,  // the stream is over; see end_status(). Holds that are not lost are valid for a while
  };
  Kind kind = Kind::kLost;
  std::string hold_id;
  absl::Duration limit;
};

struct SessionOptions {
  std::string client_name;
  // How long the daemon waits for a sign of life. 0: the stream alone counts.
  absl::Duration ttl = limits::kDefaultTtl;
  // How long Open waits for the daemon.
  absl::Duration open_timeout = absl::Seconds(5);
  // How much longer than the daemon was asked to take a command waits for its answer. Time in which
  // this process stood still counts for neither.
  absl::Duration patience = absl::Seconds(10);
  std::function<void(const SessionEvent&)> on_event;
};

class SessionCore;

class Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(std::shared_ptr<grpc::Channel> channel,
                                                       SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Not getting a busy key is an answer (OUTCOME_NOT_ACQUIRED). Blocks up to the request's wait,
  // and `patience`; a grant that comes later than that is given back.
  absl::StatusOr<v1::AcquireResponse> Acquire(v1::AcquireRequest request);
  // The same for several keys, all or nothing. Each of the grants is a hold of its own.
  absl::StatusOr<v1::AcquireAllResponse> AcquireAll(v1::AcquireAllRequest request);
  // Gives one acquire back. From the call on the hold of a single acquire is not held any more.
  absl::StatusOr<v1::ReleaseResponse> Release(const std::string& hold_id);
  // The worker lives: for holds that were acquired with `feed`.
  absl::Status Feed(const std::string& hold_id);
  // Work under a lost hold has stopped: lets the daemon grant the key before the hold's time is
  // over.
  absl::Status LostAck(const std::string& hold_id);

  // Whether the hold may be relied on at this moment.
  bool IsHeld(const std::string& hold_id);
  // Until when, as known now: answered pings move it on. In the past: it is not held.
  BootTime ValidUntil(const std::string& hold_id);
  // nullopt: held, or not known (never granted, released, or acknowledged as lost).
  std::optional<Loss> LossOf(const std::string& hold_id);

  const v1::SessionOpened& opened() const;
  // Why the stream ended; OK while it lives.
  absl::Status end_status() const;

 private:
  explicit Session(std::unique_ptr<SessionCore> core);
  std::unique_ptr<SessionCore> core_;
};

}  // namespace holdfast::client
