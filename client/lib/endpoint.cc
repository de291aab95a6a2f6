// SPDX-License-Identifier: Apache-2.0
#include "client/lib/endpoint.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast::client {
namespace {

constexpr absl::string_view kUnixScheme = "unix://";

bool IsHostAndPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0) return false;
  if (!absl::SimpleAtoi(address.substr(colon + 1), &port) || port == 0 || port > 65535)
    return false;
  const absl::string_view host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed || host.find_first_of(":/ []") == absl::string_view::npos;
}

bool IsUnixPath(absl::string_view address) {
  return absl::StartsWith(address, kUnixScheme) && address.size() > kUnixScheme.size() + 1 &&
         address[kUnixScheme.size()] == '/';
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(absl::string_view address) {
  if (!IsUnixPath(address) && !IsHostAndPort(address)) {
    return Fail(Reason::kInvalidField, "address",
                absl::StrCat("'", address, "' is no address: HOST:PORT, such as ", kDefaultAddress,
                             ", or unix:///path"));
  }
  grpc::ChannelArguments arguments;
  // A proxy that the environment names is for the web, not for the daemon next door.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(std::string(address), grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace holdfast::client
