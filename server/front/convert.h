// SPDX-License-Identifier: Apache-2.0
//
// Between the contract's messages and the engine's commands and events. Checked here is only what
// the engine's types cannot hold: malformed durations and unknown enum numbers, as INVALID_ARGUMENT
// naming the field. What values mean and which are allowed is the engine's business.
//
// An owner goes back to clients in Grant and Lost only; others see its fingerprint.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "holdfast/v1/admin.pb.h"
#include "holdfast/v1/lock.pb.h"
#include "holdfast/v1/requests.pb.h"
#include "holdfast/v1/session.pb.h"
#include "src/engine/commands.h"

namespace holdfast::server {

// ---- Requests. `ns` is the namespace of requests that name none. Strings are moved out.
absl::StatusOr<engine::OpenSession> ToOpenSession(v1::SessionOpen&& open, engine::CommandHead head);
absl::StatusOr<engine::Acquire> ToAcquire(v1::AcquireRequest&& request, engine::CommandHead head,
                                          const std::string& ns);
absl::StatusOr<engine::AcquireAll> ToAcquireAll(v1::AcquireAllRequest&& request,
                                                engine::CommandHead head, const std::string& ns);
absl::StatusOr<engine::Renew> ToRenew(v1::RenewRequest&& request, engine::CommandHead head,
                                      const std::string& ns);
engine::Release ToRelease(v1::ReleaseRequest&& request, engine::CommandHead head,
                          const std::string& ns);
absl::StatusOr<engine::ForceRelease> ToForceRelease(v1::ForceReleaseRequest&& request,
                                                    engine::CommandHead head,
                                                    const std::string& ns);

// ---- Answers
void ToMessage(const engine::Grant& grant, v1::AcquireResponse& to);
void ToMessage(const engine::NotAcquired& answer, v1::AcquireResponse& to);
void ToMessage(const engine::AllGranted& answer, v1::AcquireAllResponse& to);
void ToMessage(const engine::NoneGranted& answer, v1::AcquireAllResponse& to);
void ToMessage(const engine::RenewAnswer& answer, v1::RenewResponse& to);
void ToMessage(const engine::ReleaseAnswer& answer, v1::ReleaseResponse& to);
void ToMessage(const engine::InspectAnswer& answer, v1::KeyState& to);
void ToMessage(const engine::SessionState& session, v1::SessionInfo& to);
void ToMessage(const engine::CloseSessionAnswer& answer, v1::CloseSessionResponse& to);
void ToMessage(const engine::ForceAnswer& answer, v1::ForceReleaseResponse& to);
void ToMessage(const engine::Lost& lost, v1::Lost& to);
void ToMessage(const engine::Watched& watched, v1::WatchEvent& to);
void ToMessage(const absl::Status& status, v1::Error& to);

// The event of a stream, except SessionOpened (which carries the daemon's limits:
// session_stream.cc), EndStream and DrainDone, which are no messages.
void ToMessage(const engine::Event& event, v1::SessionEvent& to);

// ---- Durations
// Unset: nullopt. From 0 to 315,576,000,000 s, the two parts agreeing, or INVALID_ARGUMENT.
absl::StatusOr<std::optional<absl::Duration>> FromMessage(
    bool is_set, const google::protobuf::Duration& duration, absl::string_view field);
// Rounded down to the nanosecond; not for infinite ones, which are unset fields.
void ToMessage(absl::Duration duration, google::protobuf::Duration& to);

}  // namespace holdfast::server
