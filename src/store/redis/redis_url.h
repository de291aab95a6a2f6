// SPDX-License-Identifier: Apache-2.0
//
// Where a Redis server is and how to log in there, as people write it:
//   redis://[user[:password]@]host[:port][/db]
//   rediss://...                        the same over TLS; ?cacert=FILE&cert=FILE&key=FILE
//   redis+unix://[user[:password]@]/path/to/socket[?db=N]
// Reserved characters in user, password, path and files are percent-encoded. A lone word before the
// `@` is the user; for a password alone write `:password@`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast::redis {

struct RedisUrl {
  enum class Transport { kTcp, kTls, kUnix };

  Transport transport = Transport::kTcp;
  std::string host;  // a name or an address, an IPv6 address without its brackets
  int port = 6379;
  std::string path;  // of the socket
  std::string user;
  std::string password;
  int db = 0;
  // Files for TLS; empty: the system's authorities, no client certificate.
  std::string ca_file;
  std::string cert_file;
  std::string key_file;

  // The same URL without user, password and files: for logs.
  std::string Describe() const;
};

// INVALID_ARGUMENT naming the part that is wrong; never with the password in it.
absl::StatusOr<RedisUrl> ParseRedisUrl(absl::string_view text);

}  // namespace holdfast::redis
