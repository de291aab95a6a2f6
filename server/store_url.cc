// SPDX-License-Identifier: Apache-2.0
//
// The half of the factory that only looks at the URL.
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/store_factory.h"

namespace holdfast::server {
namespace {

constexpr absl::string_view kRule =
    "memory:, memory:/absolute/folder, redis://HOST:PORT/DB, rediss://HOST:PORT/DB or "
    "redis+unix:///path/to/socket";

constexpr absl::string_view kLater[] = {"redis+sentinel", "redis+cluster", "redlock",
                                        "zookeeper",      "etcd",          "etcds"};

std::string MaskQueryItem(absl::string_view item) {
  const size_t equals = item.find('=');
  if (equals == absl::string_view::npos) return std::string(item);
  const std::string name = absl::AsciiStrToLower(item.substr(0, equals));
  for (const absl::string_view secret : {"pass", "secret", "token", "auth"}) {
    if (absl::StrContains(name, secret)) return absl::StrCat(item.substr(0, equals), "=***");
  }
  return std::string(item);
}

}  // namespace

absl::Status CheckStoreUrl(absl::string_view url) {
  const size_t colon = url.find(':');
  const absl::string_view scheme = url.substr(0, colon);
  const absl::string_view rest =
      colon == absl::string_view::npos ? absl::string_view() : url.substr(colon + 1);
  for (const absl::string_view later : kLater) {
    if (scheme == later) {
      return absl::UnimplementedError(
          absl::StrCat(kRule, " (", scheme, " is not supported by this version)"));
    }
  }
  if (colon != absl::string_view::npos) {
    if (scheme == "memory" && (rest.empty() || rest.front() == '/')) return absl::OkStatus();
    if ((scheme == "redis" || scheme == "rediss") && absl::StartsWith(rest, "//") &&
        rest.size() > 2) {
      return absl::OkStatus();
    }
    if (scheme == "redis+unix" && absl::StartsWith(rest, "//") && rest.size() > 3) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(kRule);
}

std::string MaskStoreUrl(absl::string_view url) {
  const size_t query = url.find('?');
  std::string masked(url.substr(0, query));
  const size_t authority = masked.find("://");
  if (authority != std::string::npos) {
    const size_t begin = authority + 3;
    // A password may contain a slash that somebody forgot to escape: the last @ ends it.
    const size_t at = masked.rfind('@');
    if (at != std::string::npos && at >= begin) {
      const size_t colon = masked.find(':', begin);
      const bool named = colon != std::string::npos && colon < at;
      masked.replace(named ? colon + 1 : begin, at - (named ? colon + 1 : begin), "***");
    }
  }
  if (query == absl::string_view::npos) return masked;
  std::vector<std::string> items;
  for (const absl::string_view item : absl::StrSplit(url.substr(query + 1), '&')) {
    items.push_back(MaskQueryItem(item));
  }
  return absl::StrCat(masked, "?", absl::StrJoin(items, "&"));
}

}  // namespace holdfast::server
