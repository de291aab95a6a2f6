// SPDX-License-Identifier: Apache-2.0
//
// A set of keys on its way to being acquired, all or nothing (AcquireAll). The
// engine runs one ordinary acquire for each, as its own caller, in the order of
// the keys:
//
//  * Nothing held: wait in the line of one key, the lowest or the one that was
//    busy last, for as long as the caller allows.
//  * Some held, next key above all of them: wait at most until the partial hold
//    is limits::kMaxPartialHold old.
//  * Some held, next key below one of them: try once.
//
// Where the next key is not had in time, what is held is undone and the set
// waits for that key first. So sets wait for each other upwards only, which
// closes no cycle, and for others never longer than the bound.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/engine/commands.h"
#include "src/engine/records.h"

namespace holdfast::engine {

// One key of it. `grant` is what the set has of it; its `waited` counts from the
// set's `received`.
struct SetMember {
  size_t asked = 0;  // its place in the request
  std::optional<Grant> grant;
};

// An AcquireAll that is not answered yet. Exactly one of its acquires is under way.
struct AcquireSet {
  LocalId id = 0;
  AcquireAll command;
  Callers callers;
  std::string log_key;  // empty: no command_id
  LocalId session = 0;
  bool owner_is_new = false;
  bool replay_only = false;  // the answer of a command that was run before, from the store
  bool known_forgotten = false;
  absl::Duration lease;
  absl::Duration max_hold;
  BootTime received;
  BootTime deadline;
  std::string op_id;                              // of each of its acquires
  std::vector<SetMember> members;                 // in the order of their keys
  size_t first = 0;                               // the member to wait for while nothing is held
  size_t trying = 0;                              // the member whose acquire is under way
  uint64_t request = 0;                           // that acquire's request id on kSetChannel
  BootTime partial_until = BootTime::Infinite();  // when a partial hold is given back

  bool waits() const { return command.wait > absl::ZeroDuration(); }
  bool holds_some() const {
    return std::any_of(members.begin(), members.end(),
                       [](const SetMember& member) { return member.grant.has_value(); });
  }
  BootTime SentOf(const Grant& grant) const { return received + grant.waited; }
  // The member to go for next; nothing: all are held.
  std::optional<size_t> Next() const;
  // Whether a set that holds some may wait for this member.
  bool MayWaitFor(size_t member) const;
  // How long it may hold some without all.
  absl::Duration PartialBound() const { return std::min(limits::kMaxPartialHold, lease / 4); }
};

// What an acquire of one key of the set asks for.
Acquire MemberCommand(const AcquireAll& command, size_t asked);

// The answers of a set's acquires go here instead of to a channel of the server's.
inline constexpr uint64_t kSetChannel = ~uint64_t{0};

}  // namespace holdfast::engine
