// SPDX-License-Identifier: Apache-2.0
//
// What every call needs, and how failures look on the wire.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine_loop.h"
#include "src/base/clock.h"

namespace holdfast::server {

// Outlives the calls; unchanged while they run.
struct Front {
  EngineLoop* loop;
  const Clock* clock;
  std::string daemon_id;  // one life of the daemon
  std::string default_namespace;
  absl::Duration max_lease;
  absl::Duration default_max_hold;  // infinite: none
  bool behind_proxy = false;
};

// After so long without an answer to its pings a connection is closed by our side. TCP gives up on
// unacknowledged data after the same time (gRPC sets TCP_USER_TIMEOUT to it).
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);

// Answers stay well below the 4 MiB that gRPC's clients accept by default.
inline constexpr size_t kMaxAnswerBytes = 1 << 20;

// Who asks, as long as nobody is asked to say so.
inline constexpr char kAnonymous[] = "anonymous";

// The head of a command of `request_id` on `channel`, received now.
engine::CommandHead HeadFor(const Front& front, uint64_t channel, uint64_t request_id);

// The status as gRPC has it; an error's reason, field and details are added to the call's trailing
// metadata as proto/holdfast/v1/types.proto says. Once a call, before it is finished.
grpc::Status ToGrpcStatus(const absl::Status& status, grpc::CallbackServerContext& context);

// UNIMPLEMENTED: `feature` is not in this version.
absl::Status Unsupported(absl::string_view feature);

// The queue into the engine is full.
absl::Status QueueFull();

}  // namespace holdfast::server
