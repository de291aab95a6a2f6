// SPDX-License-Identifier: Apache-2.0
//
// Between the contract's messages and the types of src/base.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/lib/validity.h"
#include "google/protobuf/duration.pb.h"
#include "holdfast/v1/types.pb.h"

namespace holdfast::client {

google::protobuf::Duration ToMessage(absl::Duration duration);
absl::Duration FromMessage(const google::protobuf::Duration& duration);

GrantTimes TimesOf(const v1::Grant& grant);

// With the daemon's reason, field and retry_after (src/base/status.h).
absl::Status StatusOf(const v1::Error& error);
// The outcome of a call; the daemon's own words come with the trailing metadata. Where they do not
// (no daemon answered), the reason is kUnspecified.
absl::Status StatusOf(const grpc::Status& status, const grpc::ClientContext& context);

// UNAVAILABLE where no daemon answered at all, as opposed to a daemon that says UNAVAILABLE.
bool IsUnreachable(const absl::Status& status);

}  // namespace holdfast::client
