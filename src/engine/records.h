// SPDX-License-Identifier: Apache-2.0
//
// What the engine remembers: sessions, holds, waiters, and one line per key
// that something is going on with. Plain records; core.h says who changes them.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/store_types.h"
#include "src/engine/commands.h"

namespace holdfast::engine {

// Numbers records within one engine; never reused, 0 is none.
using LocalId = uint64_t;

// The life of one client's stream.
struct Session {
  LocalId id = 0;
  std::string session_id;
  uint64_t channel = 0;  // 0: its stream broke, its ttl is being waited for
  std::string principal;
  std::string client_name;
  std::string peer;
  absl::Duration ttl;  // zero: the stream alone stands for it
  absl::Duration lease;
  BootTime opened;
  BootTime last_ping;
  absl::btree_set<LocalId> holds;
  absl::btree_set<LocalId> waiters;
  bool closing = false;           // an operator's wish: it ends with its last hold
  absl::btree_set<LocalId> sets;  // AcquireAlls that are not answered yet

  BootTime ends() const {
    return ttl == absl::ZeroDuration() ? BootTime::Infinite() : last_ping + ttl;
  }
};

// A session's part in a grant. Bare leases have none: they live in the store only.
struct Hold {
  LocalId id = 0;
  LocalId session = 0;
  HoldRef ref;
  Mode mode = Mode::kExclusive;
  int64_t token = 0;
  uint32_t count = 0;      // of this hold
  uint32_t releasing = 0;  // how many of them a release under way gives back
  std::string note;
  absl::Duration lease;
  BootTime granted;
  BootTime lease_end;                        // by the store's word, at the earliest
  BootTime hard_end = BootTime::Infinite();  // max hold
  BootTime next_renew;
  BootTime feed_end = BootTime::Infinite();
  absl::Duration feed;
  BootTime renew_sent;
  bool renewing = false;
  LossReason loss = LossReason::kSessionClosed;  // why it is lost
  bool lost = false;  // told; it is given back on lost_ack, or forgotten at lease_end
  bool contended = false;
  bool partial =
      false;  // part of an AcquireAll that is not complete: its client knows nothing of it
  BootTime timer_at = BootTime::Infinite();  // the earliest timer that is queued for it
  std::vector<std::string> commands;         // keys of the command log that live as long as it does

  bool being_released() const { return releasing >= count; }
  // The store has cut its lease to max hold: renewals cannot move it any more.
  bool at_max_hold() const { return lease_end + absl::Milliseconds(2) >= hard_end; }
};

// Who hears an answer: the first copy of a command, or a retry of it.
struct Caller {
  ReplyTo to;
  BootTime received;
};
using Callers = absl::InlinedVector<Caller, 1>;

struct Line;

// An acquire that is not answered yet.
struct Waiter {
  LocalId id = 0;
  Acquire command;
  Callers callers;
  std::string log_key;  // empty: no command_id
  uint64_t digest = 0;
  LocalId session = 0;
  bool of_set = false;  // one key of an AcquireAll: the engine itself is the caller
  bool set_holds_some = false;
  Line* line = nullptr;
  std::list<LocalId>::iterator place;  // in line->waiters, where in_line
  bool in_line = false;
  bool owner_is_new = false;  // made by the daemon for this request: it cannot hold yet
  bool replay_only = false;   // a retry of a command that was answered before
  bool known_forgotten = false;
  bool saw_grace = false;
  bool told = false;  // those who watch know that it waits
  BootTime began;
  BootTime deadline;
  absl::Duration lease;
  absl::Duration max_hold;
  std::string op_id;
  uint64_t number = 0;     // FIFO: its own place in the store's line
  bool in_store = false;   // FIFO: it may be there
  bool keeps_off = false;  // EXCLUSIVE: the store lets nobody join while this waits

  bool waits() const { return command.wait > absl::ZeroDuration(); }
  // While it waits its owner may hold other keys. A set with keys in hand gives way by itself.
  bool may_block() const { return waits() && in_line && !owner_is_new && !set_holds_some; }
};

// One step of a key at the store. A key's steps go one after the other.
struct LineOp {
  enum class Kind {
    kTry,       // the head of the line tries to take the key
    kProbe,     // one further behind may already be its owner
    kReplay,    // the answer of a command that was run before
    kRelease,   // one count of a hold, for a caller
    kGiveBack,  // a whole hold, for nobody
    kUndo,      // an acquire that nobody wants any more
    kPassOn,    // leaves the store's line, or looks after a key that was handed on
  };
  Kind kind = Kind::kTry;
  HoldRef ref;
  std::string op_id;
  LocalId waiter = 0;  // kTry, kProbe, kReplay; 0: it gave up meanwhile
  // kRelease, and kUndo of a grant that was recorded: this engine's record, 0: a bare lease.
  LocalId hold = 0;
  Callers callers;  // kRelease; empty: they were told UNAVAILABLE, it is done anyway
  std::string log_key;
  Place place;  // kTry, kProbe as it was sent, and kPassOn
  PassOnOp::Kind pass_on = PassOnOp::Kind::kLeave;
  bool enters = false;  // kTry, kProbe: as it was sent
  bool leaves = false;
  uint64_t request = 0;                     // in flight as this store request
  BootTime sent;                            // the latest attempt
  bool maybe_applied = false;               // an earlier attempt may have been carried out
  BootTime drop_at = BootTime::Infinite();  // the store has forgotten the hold by then

  bool takes() const { return kind == Kind::kTry || kind == Kind::kProbe || kind == Kind::kReplay; }
};

// A key that this engine has holds, waiters or unfinished steps of.
struct Line {
  LocalId id = 0;
  KeyName name;
  std::vector<LocalId> holds;
  std::list<LocalId> waiters;  // in order of arrival
  // The front one may be in flight, and with a release the try behind it.
  std::list<LineOp> ops;
  std::vector<HolderState> last_holders;  // as the store last said
  BootTime holders_at;                    // when it was asked that
  bool looking = false;                   // it is being asked that, beside the line's steps
  bool try_again = false;                 // woken while a try was in flight
  bool subscribed = false;
  size_t barging = 0;     // BARGING waiters
  bool stands = false;    // their place may be in the store's line
  std::string handed_to;  // a daemon that has to claim the key until claim_at
  BootTime claim_at = BootTime::Infinite();
  // While another daemon's waiter is first: how often, and since when, this engine has passed the
  // key among its own.
  bool others_first = false;
  uint32_t own_handoffs = 0;
  BootTime own_since;
  bool blocked = false;  // the store could not be reached: wait for kUp or the retry
  BootTime retry_at = BootTime::Infinite();
  BootTime timer_at = BootTime::Infinite();

  bool idle() const { return holds.empty() && waiters.empty() && ops.empty() && handed_to.empty(); }
};

}  // namespace holdfast::engine
