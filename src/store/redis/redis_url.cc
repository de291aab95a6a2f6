// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/redis_url.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/base/status.h"

namespace holdfast::redis {
namespace {

constexpr absl::string_view kForms =
    "redis://[user:password@]host[:port][/db], rediss://... or redis+unix:///path[?db=N]";

absl::Status Wrong(absl::string_view part, absl::string_view what) {
  return Fail(Reason::kInvalidField, "store", absl::StrCat("store URL: ", part, " ", what));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> PercentDecode(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

absl::Status Decode(absl::string_view part, absl::string_view text, std::string* out) {
  std::optional<std::string> decoded = PercentDecode(text);
  if (!decoded.has_value()) return Wrong(part, "has a wrong %-encoding");
  *out = *std::move(decoded);
  return absl::OkStatus();
}

absl::Status ParseDb(absl::string_view text, RedisUrl* url) {
  if (!absl::SimpleAtoi(text, &url->db) || url->db < 0) {
    return Wrong("database", "has to be a number from 0");
  }
  return absl::OkStatus();
}

absl::Status ParseUserInfo(absl::string_view text, RedisUrl* url) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  absl::Status status = Decode("user", parts.first, &url->user);
  if (status.ok()) status = Decode("password", parts.second, &url->password);
  if (status.ok() && url->password.empty()) status = Wrong("password", "is missing before the @");
  return status;
}

absl::Status ParseHostPort(absl::string_view text, RedisUrl* url) {
  absl::string_view port;
  if (absl::ConsumePrefix(&text, "[")) {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return Wrong("host", "lacks its closing ]");
    url->host = std::string(text.substr(0, end));
    port = text.substr(end + 1);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":")) {
      return Wrong("host", "has something but a :port after its ]");
    }
  } else {
    const size_t colon = text.find(':');
    absl::Status status = Decode("host", text.substr(0, colon), &url->host);
    if (!status.ok()) return status;
    if (colon != absl::string_view::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) return Wrong("port", "is missing after the :");
    }
  }
  if (url->host.empty()) return Wrong("host", "is missing");
  if (!port.empty() &&
      (!absl::SimpleAtoi(port, &url->port) || url->port < 1 || url->port > 65535)) {
    return Wrong("port", "has to be a number from 1 to 65535");
  }
  return absl::OkStatus();
}

absl::Status ParseQuery(absl::string_view query, RedisUrl* url) {
  for (absl::string_view item : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> option =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    const bool tls = url->transport == RedisUrl::Transport::kTls;
    absl::Status status;
    if (option.first == "db" && url->transport == RedisUrl::Transport::kUnix) {
      status = ParseDb(option.second, url);
    } else if (option.first == "cacert" && tls) {
      status = Decode("cacert", option.second, &url->ca_file);
    } else if (option.first == "cert" && tls) {
      status = Decode("cert", option.second, &url->cert_file);
    } else if (option.first == "key" && tls) {
      status = Decode("key", option.second, &url->key_file);
    } else {
      status = Wrong("option", absl::StrCat("'", option.first, "' is not known here"));
    }
    if (!status.ok()) return status;
  }
  if (url->cert_file.empty() != url->key_file.empty()) {
    return Wrong("option", "'cert' and 'key' belong together");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RedisUrl> ParseRedisUrl(absl::string_view text) {
  RedisUrl url;
  if (absl::ConsumePrefix(&text, "redis+unix://")) {
    url.transport = RedisUrl::Transport::kUnix;
  } else if (absl::ConsumePrefix(&text, "rediss://")) {
    url.transport = RedisUrl::Transport::kTls;
  } else if (!absl::ConsumePrefix(&text, "redis://")) {
    return Wrong("scheme", absl::StrCat("is not one of ", kForms));
  }

  const size_t question = text.find('?');
  const absl::string_view query =
      question == absl::string_view::npos ? "" : text.substr(question + 1);
  text = text.substr(0, question);
  const size_t at = text.rfind('@');
  absl::Status status;
  if (at != absl::string_view::npos) {
    status = ParseUserInfo(text.substr(0, at), &url);
    text = text.substr(at + 1);
  }

  if (status.ok() && url.transport == RedisUrl::Transport::kUnix) {
    status = absl::StartsWith(text, "/") ? Decode("path", text, &url.path)
                                         : Wrong("path", "has to begin with a /");
  } else if (status.ok()) {
    const size_t slash = text.find('/');
    status = ParseHostPort(text.substr(0, slash), &url);
    if (status.ok() && slash != absl::string_view::npos && slash + 1 < text.size()) {
      status = ParseDb(text.substr(slash + 1), &url);
    }
  }
  if (status.ok()) status = ParseQuery(query, &url);
  if (!status.ok()) return status;
  return url;
}

std::string RedisUrl::Describe() const {
  if (transport == Transport::kUnix) {
    return absl::StrCat("redis+unix://", path, db == 0 ? "" : absl::StrCat("?db=", db));
  }
  const bool v6 = absl::StrContains(host, ':');
  return absl::StrCat(transport == Transport::kTls ? "rediss://" : "redis://", v6 ? "[" : "", host,
                      v6 ? "]" : "", ":", port, "/", db);
}

}  // namespace holdfast::redis
