// SPDX-License-Identifier: Apache-2.0
//
// Where a daemon is: HOST:PORT, [IPV6]:PORT or unix:///path.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast::client {

inline constexpr char kDefaultAddress[] = "127.0.0.1:7420";

// A channel to the daemon; it connects when it is first used. INVALID_ARGUMENT
// where `address` has none of the forms.
absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(absl::string_view address);

}  // namespace holdfast::client
