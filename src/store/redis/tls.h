// SPDX-License-Identifier: Apache-2.0
//
// TLS for connections to Redis: the server's certificate has to be valid and to
// name the host that the URL names.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/store/redis/redis_url.h"

struct redisContext;
struct ssl_ctx_st;

namespace holdfast::redis {

class TlsContext {
 public:
  // Reads the URL's certificate files; the answer names the one that it cannot use.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Create(const RedisUrl& url);
  ~TlsContext();

  // Begins the handshake on a context whose socket is connected.
  absl::Status Begin(redisContext* context) const;

 private:
  TlsContext(ssl_ctx_st* ctx, std::string host) : ctx_(ctx), host_(std::move(host)) {}

  ssl_ctx_st* const ctx_;  // owned
  const std::string host_;
};

}  // namespace holdfast::redis
