// SPDX-License-Identifier: Apache-2.0
//
// The Lua scripts of the store: their text with its constants and shared parts
// filled in, and the digests under which a server keeps them.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/store/redis/server_info.h"

namespace holdfast::redis {

// kGive is kApply for releases that need memory when Redis has none left. (Not for others: a server
// that forgets its scripts must forget them for all requests of a key.)
enum class Script { kApply, kGive, kRenew, kInspect, kForce, kBeat, kWatch };
inline constexpr std::array kAllScripts = {Script::kApply,   Script::kGive,  Script::kRenew,
                                           Script::kInspect, Script::kForce, Script::kBeat,
                                           Script::kWatch};

class ScriptSet {
 public:
  // `max_lease` is part of the scripts: it is the grace that they open.
  explicit ScriptSet(absl::Duration max_lease) : max_lease_(max_lease) {}

  // Builds the texts for a server of that version: from 7 on a script says what it needs (renewing,
  // releasing and looking work when Redis is full). The digests are forgotten.
  void Build(const ServerInfo& server);

  absl::string_view text(Script script) const { return At(script).text; }
  // The server's answer to SCRIPT LOAD.
  const std::string& sha(Script script) const { return At(script).sha; }
  void set_sha(Script script, absl::string_view sha);

  // Runs once per connection and is sent as text.
  const std::string& open_text() const { return open_; }

 private:
  struct Entry {
    std::string text;
    std::string sha;
  };
  const Entry& At(Script script) const { return entries_.at(static_cast<size_t>(script)); }

  const absl::Duration max_lease_;
  std::array<Entry, kAllScripts.size()> entries_;
  std::string open_;
};

}  // namespace holdfast::redis
