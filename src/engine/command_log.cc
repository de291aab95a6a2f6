// SPDX-License-Identifier: Apache-2.0
#include "src/engine/command_log.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "src/base/limits.h"

namespace holdfast::engine {

std::string CommandLog::Key(absl::string_view scope, const KeyName& name,
                            absl::string_view command_id) {
  // Neither a key nor an id can contain the separator.
  return absl::StrCat(scope, "\n", name.ns, "\n", name.key, "\n", command_id);
}

std::string CommandLog::SetKey(absl::string_view scope, absl::string_view ns,
                               absl::string_view command_id) {
  // No key is empty.
  return absl::StrCat(scope, "\n", ns, "\n\n", command_id);
}

CommandLog::Found CommandLog::Find(const std::string& key, uint64_t digest, BootTime now) {
  Forget(now);
  const auto it = entries_.find(key);
  if (it == entries_.end()) {
    const uint64_t fingerprint = absl::HashOf(key);
    if (fingerprints_.contains(fingerprint) || older_fingerprints_.contains(fingerprint)) {
      return Forgotten{};
    }
    return New{};
  }
  if (it->second.digest != digest) return Mismatch{};
  if (const auto* answer = std::get_if<LoggedAnswer>(&it->second.state)) return *answer;
  return std::get<UnderWay>(it->second.state);
}

void CommandLog::Begin(const std::string& key, uint64_t digest, UnderWay under_way) {
  entries_[key] = Entry{digest, under_way, false};
}

void CommandLog::Abandon(const std::string& key) {
  const auto it = entries_.find(key);
  if (it != entries_.end() && std::holds_alternative<UnderWay>(it->second.state))
    entries_.erase(it);
}

void CommandLog::Finish(const std::string& key, LoggedAnswer answer, bool pinned, BootTime now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  it->second.state = std::move(answer);
  it->second.pinned = pinned;
  if (!pinned) ended_.push_back(Ended{key, now});
  Forget(now);
}

void CommandLog::Unpin(const std::string& key, BootTime now) {
  const auto it = entries_.find(key);
  if (it == entries_.end() || !it->second.pinned) return;
  it->second.pinned = false;
  ended_.push_back(Ended{key, now});
  Forget(now);
}

void CommandLog::Forget(BootTime now) {
  while (!ended_.empty() && (ended_.size() > limits::kRememberedCommands ||
                             ended_.front().at + limits::kCommandMemory <= now)) {
    Remember(ended_.front().key);
    entries_.erase(ended_.front().key);
    ended_.pop_front();
  }
}

void CommandLog::Remember(const std::string& key) {
  if (fingerprints_.size() >= limits::kForgottenCommands / 2) {
    older_fingerprints_ = std::move(fingerprints_);
    fingerprints_.clear();
  }
  fingerprints_.insert(absl::HashOf(key));
}

}  // namespace holdfast::engine
