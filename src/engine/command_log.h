// SPDX-License-Identifier: Apache-2.0
//
// What makes retries by command_id safe: which commands are under way, and what
// was answered to those that had an effect.
//
//  * An answer is kept for kCommandMemory after the command ended, but at most
//    for the kRememberedCommands newest; one that a live hold came from is kept
//    as long as the hold lives.
//  * Of what was forgotten a fingerprint stays (the newest kForgottenCommands):
//    enough to refuse to run it again.
//  * A command without effect (an error, a busy key) leaves nothing: it may be
//    run again under the same id.
//
// Keys are made with Key(); a command that comes again with other contents is
// told apart by its digest.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "src/base/clock.h"
#include "src/engine/commands.h"
#include "src/engine/records.h"

namespace holdfast::engine {

// An answer, with the time that its durations count from.
struct LoggedAnswer {
  std::variant<Grant, AllGranted, RenewAnswer, ReleaseAnswer> answer;
  BootTime sent;               // AllGranted: from where the `waited` of each grant counts
  LocalId hold = 0;            // Grant of a session
  std::vector<LocalId> holds;  // AllGranted of a session
};

// Who will answer a command that is under way.
struct UnderWay {
  LocalId waiter = 0;    // an acquire
  LineOp* op = nullptr;  // a release
  uint64_t renewal = 0;  // the store request of a renewal
  LocalId set = 0;       // an AcquireAll
};

class CommandLog {
 public:
  struct New {};
  struct Forgotten {};
  struct Mismatch {};
  using Found = std::variant<New, UnderWay, LoggedAnswer, Forgotten, Mismatch>;

  // scope: the session's id, empty for bare leases.
  static std::string Key(absl::string_view scope, const KeyName& name,
                         absl::string_view command_id);
  // Of an AcquireAll.
  static std::string SetKey(absl::string_view scope, absl::string_view ns,
                            absl::string_view command_id);

  Found Find(const std::string& key, uint64_t digest, BootTime now);
  void Begin(const std::string& key, uint64_t digest, UnderWay under_way);
  // It had no effect: it may be run again. Nothing happens to one that is answered.
  void Abandon(const std::string& key);
  // It had an effect. `pinned`: kept until Unpin, because its hold lives.
  void Finish(const std::string& key, LoggedAnswer answer, bool pinned, BootTime now);
  void Unpin(const std::string& key, BootTime now);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t digest = 0;
    std::variant<UnderWay, LoggedAnswer> state;
    bool pinned = false;
  };
  struct Ended {
    std::string key;
    BootTime at;
  };

  void Forget(BootTime now);
  void Remember(const std::string& key);

  absl::flat_hash_map<std::string, Entry> entries_;
  std::deque<Ended> ended_;  // oldest first
  // Two generations: when the younger is full it becomes the older.
  absl::flat_hash_set<uint64_t> fingerprints_;
  absl::flat_hash_set<uint64_t> older_fingerprints_;
};

}  // namespace holdfast::engine
