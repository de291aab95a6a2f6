// SPDX-License-Identifier: Apache-2.0
//
// Under which names things lie in Redis:
//   <prefix><namespace>:<key>        the hash of a lock
//   <prefix>#state                   marker, grace, last token
//   <prefix>#free:<namespace>:<key>  the channel that tells of its release
//   <prefix>#watch                   the channel of all news, while somebody watches
//   <prefix>#line:<namespace>:<key>  who waits for it
//   <prefix>#alive                   which daemons live, of those with places in lines
// An empty prefix serves the namespace "default" only: the lock is just <key>
// (which then may not begin with '#'), the state is #holdfast:state, and the
// channels are #free:default:<key> and #watch.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "src/base/names.h"

namespace holdfast::redis {

class KeyLayout {
 public:
  explicit KeyLayout(std::string prefix);

  const std::string& state_key() const { return state_key_; }

  // Why a name cannot be stored under this prefix; empty: it can.
  std::string Refusal(const KeyName& name) const;

  std::string LockKey(const KeyName& name) const;
  std::string Channel(const KeyName& name) const;
  std::string WatchChannel() const;
  // The name behind a lock's key, of whichever namespace; nullopt: it is none.
  std::optional<KeyName> NameOf(absl::string_view lock_key) const;
  std::string LineKey(const KeyName& name) const;
  std::string AliveKey() const;

  // A pattern for SCAN that matches the locks of `ns` whose key begins with `key_prefix`, and
  // little else (ParseLockKey tells).
  std::string ScanPattern(absl::string_view ns, absl::string_view key_prefix) const;
  // The name behind a lock's key; nullopt where it is not one of `ns` (with that prefix).
  std::optional<KeyName> ParseLockKey(absl::string_view ns, absl::string_view key_prefix,
                                      absl::string_view lock_key) const;

 private:
  std::string NamespacePrefix(absl::string_view ns) const;

  const std::string prefix_;
  const std::string state_key_;
};

}  // namespace holdfast::redis
