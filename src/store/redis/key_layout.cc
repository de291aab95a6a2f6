// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/key_layout.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace holdfast::redis {
namespace {

constexpr absl::string_view kDefaultNamespace = "default";

std::string EscapeGlob(absl::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

KeyLayout::KeyLayout(std::string prefix)
    : prefix_(std::move(prefix)),
      state_key_(prefix_.empty() ? "#holdfast:state" : absl::StrCat(prefix_, "#state")) {}

std::string KeyLayout::Refusal(const KeyName& name) const {
  if (!prefix_.empty()) return "";
  if (name.ns != kDefaultNamespace) {
    return absl::StrCat("an empty key prefix serves the namespace 'default' only, not '", name.ns,
                        "'");
  }
  return absl::StartsWith(name.key, "#") ? "with an empty key prefix a key may not begin with '#'"
                                         : "";
}

std::string KeyLayout::NamespacePrefix(absl::string_view ns) const {
  return prefix_.empty() ? "" : absl::StrCat(prefix_, ns, ":");
}

std::string KeyLayout::LockKey(const KeyName& name) const {
  return prefix_.empty() ? name.key : absl::StrCat(prefix_, name.ns, ":", name.key);
}

std::string KeyLayout::Channel(const KeyName& name) const {
  return absl::StrCat(prefix_, "#free:", name.ns, ":", name.key);
}

std::string KeyLayout::WatchChannel() const { return absl::StrCat(prefix_, "#watch"); }

std::optional<KeyName> KeyLayout::NameOf(absl::string_view lock_key) const {
  if (prefix_.empty()) return ParseLockKey(kDefaultNamespace, "", lock_key);
  if (!absl::ConsumePrefix(&lock_key, prefix_)) return std::nullopt;
  const size_t colon = lock_key.find(':');
  if (colon == absl::string_view::npos || colon + 1 == lock_key.size()) return std::nullopt;
  return KeyName{std::string(lock_key.substr(0, colon)), std::string(lock_key.substr(colon + 1))};
}

std::string KeyLayout::LineKey(const KeyName& name) const {
  return absl::StrCat(prefix_, "#line:", name.ns, ":", name.key);
}

std::string KeyLayout::AliveKey() const {
  return prefix_.empty() ? "#holdfast:alive" : absl::StrCat(prefix_, "#alive");
}

std::string KeyLayout::ScanPattern(absl::string_view ns, absl::string_view key_prefix) const {
  return absl::StrCat(EscapeGlob(NamespacePrefix(ns)), EscapeGlob(key_prefix), "*");
}

std::optional<KeyName> KeyLayout::ParseLockKey(absl::string_view ns, absl::string_view key_prefix,
                                               absl::string_view lock_key) const {
  if (!absl::ConsumePrefix(&lock_key, NamespacePrefix(ns)) || lock_key.empty() ||
      !absl::StartsWith(lock_key, key_prefix)) {
    return std::nullopt;
  }
  if (prefix_.empty() && absl::StartsWith(lock_key, "#")) return std::nullopt;
  return KeyName{std::string(ns), std::string(lock_key)};
}

}  // namespace holdfast::redis
