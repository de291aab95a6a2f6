// SPDX-License-Identifier: Apache-2.0
//
// What has to be looked at before and after gRPC listens: socket files, and why a bind failed.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace holdfast::server {

// The path of "unix:///path"; nullopt: not a Unix address.
std::optional<std::string> UnixPath(absl::string_view address);

// Makes room for a socket file: its folder must exist, a file that nobody listens at any more is
// removed, one in use is UNAVAILABLE (gRPC itself would take it away from its daemon).
absl::Status PrepareUnixSocket(const std::string& path);

// Why an address cannot be listened at, as far as that can be found out by trying; for a message.
std::string WhyNotBound(absl::string_view address);

}  // namespace holdfast::server
