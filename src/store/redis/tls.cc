// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/tls.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast::redis {
namespace {

std::string OpenSslError() {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return text;
}

bool IsAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

absl::Status LoadFiles(SSL_CTX* ctx, const RedisUrl& url) {
  const auto unusable = [](absl::string_view option, const std::string& file) {
    return Fail(Reason::kInvalidField, "store",
                absl::StrCat("store URL: ", option, " file ", file, ": ", OpenSslError()));
  };
  if (url.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(ctx);
  } else if (SSL_CTX_load_verify_locations(ctx, url.ca_file.c_str(), nullptr) != 1) {
    return unusable("cacert", url.ca_file);
  }
  if (url.cert_file.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(ctx, url.cert_file.c_str()) != 1) {
    return unusable("cert", url.cert_file);
  }
  if (SSL_CTX_use_PrivateKey_file(ctx, url.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable("key", url.key_file);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Create(const RedisUrl& url) {
  SSL_CTX* ctx = SSL_CTX_new(TLS_client_method());
  if (ctx == nullptr) return Fail(Reason::kStoreError, "", OpenSslError());
  std::unique_ptr<TlsContext> owner(new TlsContext(ctx, url.host));
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  absl::Status status = LoadFiles(ctx, url);
  if (!status.ok()) return status;
  return owner;
}

TlsContext::~TlsContext() { SSL_CTX_free(ctx_); }

absl::Status TlsContext::Begin(redisContext* context) const {
  SSL* ssl = SSL_new(ctx_);
  if (ssl == nullptr) return Fail(Reason::kStoreError, "", OpenSslError());
  if (IsAddress(host_)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host_.c_str());
  } else {
    SSL_set1_host(ssl, host_.c_str());
    SSL_set_tlsext_host_name(ssl, host_.c_str());
  }
  if (redisInitiateSSL(context, ssl) != REDIS_OK) {  // else the context owns `ssl`
    SSL_free(ssl);
    return Fail(Reason::kStoreUnreachable, "", absl::StrCat("TLS: ", context->errstr));
  }
  return absl::OkStatus();
}

}  // namespace holdfast::redis
