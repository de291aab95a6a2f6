// SPDX-License-Identifier: Apache-2.0
//
// Calls that need no session: bare leases, which the caller renews itself, and
// questions. Each blocks for its answer; a daemon that does not answer is
// UNAVAILABLE or DEADLINE_EXCEEDED (convert.h: IsUnreachable).
//
//   Client client(*Connect("127.0.0.1:7420"));
//   auto state = client.Inspect(request);
//
// Threading: any thread.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/admin.grpc.pb.h"
#include "holdfast/v1/lock.grpc.pb.h"

namespace holdfast::client {

class Client {
 public:
  // `patience`: how long to wait for an answer, beyond what the request itself may take.
  explicit Client(std::shared_ptr<grpc::Channel> channel,
                  absl::Duration patience = absl::Seconds(10));

  absl::StatusOr<v1::AcquireResponse> Acquire(const v1::AcquireRequest& request);
  absl::StatusOr<v1::AcquireAllResponse> AcquireAll(const v1::AcquireAllRequest& request);
  absl::StatusOr<v1::RenewResponse> Renew(const v1::RenewRequest& request);
  absl::StatusOr<v1::ReleaseResponse> Release(const v1::ReleaseRequest& request);
  absl::StatusOr<v1::InspectResponse> Inspect(const v1::InspectRequest& request);
  absl::StatusOr<v1::CheckTokenResponse> CheckToken(const v1::CheckTokenRequest& request);
  // Hands over one key after the other. The whole of it may take a minute.
  absl::Status List(const v1::ListRequest& request,
                    const std::function<void(const v1::KeyState&)>& on_key);

  // Hands over one event after the other, until `on_event` answers false or the stream ends, which
  // is a failure. `on_begin`: from now on nothing is missed without a gap event.
  absl::Status Watch(const v1::WatchRequest& request, const std::function<void()>& on_begin,
                     const std::function<bool(const v1::WatchEvent&)>& on_event);

  // ---- The operator's
  absl::StatusOr<v1::ForceReleaseResponse> ForceRelease(const v1::ForceReleaseRequest& request);
  absl::StatusOr<v1::CloseSessionResponse> CloseSession(const v1::CloseSessionRequest& request);
  // Hands over one session after the other, as List does keys.
  absl::Status ListSessions(const std::function<void(const v1::SessionInfo&)>& on_session);

  // What the daemon's health service says of the lock service: whether it can grant locks now.
  absl::StatusOr<bool> IsServing();

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::LockService::Stub> stub_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const absl::Duration patience_;
};

}  // namespace holdfast::client
