// SPDX-License-Identifier: Apache-2.0
//
// What the engine asks of a store, and what a store answers. Engine and stores
// share these types and nothing else. Semantics are those of src/store/store.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/base/names.h"

namespace holdfast {

enum class Mode { kExclusive = 1, kShared = 2, kPermit = 3 };

// Names one hold and who claims it. A store changes a hold only where owner,
// hold_id, session and epoch are all those of its record.
struct HoldRef {
  KeyName name;
  std::string owner;
  std::string hold_id;
  std::string session;  // empty: a bare lease
  uint32_t epoch = 1;
};

// ---- Requests -------------------------------------------------------------

// One attempt to take a key, or to take it once more.
//  * Free key: a new ownership with a new token, and a hold with `hold_id`.
//  * Held by `owner`: the hold with the same `session` (whatever its id) gets
//    count + 1 and at least this lease, or a new hold joins; the token stays.
//  * Held by others: SHARED joins SHARED (and its token), PERMIT joins PERMIT of the same limit
//    while fewer owners than that hold; each permit has a number of its own for a token.
//  * Held by `owner` in another mode: SHARED re-enters a hold that is EXCLUSIVE and stays so; all
//    else is ModeRefused. So is PERMIT of another limit than the key is held with, by whomever.
//  * Otherwise held by somebody else, or kept back: Busy; nothing changes.
//  * `op_id` is among the ops that the owner's hold of this session remembers:
//    nothing changes, Granted{replayed}.
struct AcquireOp {
  HoldRef hold;  // hold.hold_id: the id of a new hold
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;           // PERMIT: how many owners may hold at once; else 0
  bool refuse_reentry = false;  // held by owner: ReentryRefused, nothing changes
  bool only_reentry = false;    // free: Busy without holders, nothing changes
  bool replay_only = false;     // `op_id` not remembered: HoldGone, nothing changes
  bool will_wait = false;       // on Busy: leave a mark, so that a release wakes subscribers
  bool others_wait = false;     // on Granted of a new ownership: leave that mark as well
  absl::Duration lease;
  absl::Duration max_hold = absl::InfiniteDuration();  // of a new hold
  absl::Duration min_hold;                             // of a new hold
  absl::Duration release_delay;  // what the hold has is kept back that long after an abnormal end:
                                 // past its deadline, or by kAll
  std::string note;
  std::string op_id;
};

// How much of a hold a ReleaseOp gives back.
enum class ReleaseKind {
  kOne,   // one count
  kAll,   // the whole hold, abnormally: its session ended, or it is lost and acknowledged
  kUndo,  // an acquire whose answer was lost or came too late, as if it had never been: one count
          // if the hold remembers `op_id`, which it then forgets, so that the command can be run
          // again; else nothing. A min_hold does not keep the key back.
};

// Gives back (part of) a hold. What the owner held is free when its count is 0,
// unless a min_hold or release_delay keeps it back: the key (EXCLUSIVE), the key from all but
// readers (SHARED), one permit (PERMIT). A hold that is not there is HoldGone.
// kOne with an `op_id` that the hold remembers: nothing changes, Released again.
struct ReleaseOp {
  HoldRef hold;
  ReleaseKind kind = ReleaseKind::kOne;
  std::string op_id;
};

// Moves a hold's deadline to now + lease, but never back and never past its max_hold.
struct RenewOp {
  HoldRef hold;
  absl::Duration lease;
  Mode mode = Mode::kExclusive;  // as the caller remembers it: a hint that saves the store time
};

// What an operator does to holds that are not his: to the one with `hold_id`, or
// to all of the key where that is empty.
//  * Not `immediate`: each lasts until its present deadline and nothing moves
//    that any more (its max_hold ends there). What a foreign program took, and
//    when a min_hold lets the key go, stays as it is.
//  * `immediate`: each is over, and its min_hold and release delay with it. Where all
//    of the key are meant, so are what a foreign program took and what earlier holds keep back.
struct ForceOp {
  KeyName name;
  std::string hold_id;
  bool immediate = false;
};

struct InspectOp {
  KeyName name;
};

// One bounded step of a listing. `cursor` is empty at first, then what the last answer said.
struct ListOp {
  std::string ns;
  std::string prefix;
  std::string cursor;
};

// From the answer (Subscribed) on, a release of the key is announced as
// StoreEvent::kWake; what happened before may have been missed, so ask again then.
struct SubscribeOp {
  KeyName name;
};

// Has no answer.
struct UnsubscribeOp {
  KeyName name;
};

struct StoreRequest {
  // Chosen by the engine, never 0; its answer carries the same.
  uint64_t id = 0;
  std::variant<AcquireOp, ReleaseOp, RenewOp, ForceOp, InspectOp, ListOp, SubscribeOp,
               UnsubscribeOp>
      op;
};

// ---- Answers --------------------------------------------------------------

struct HolderState {
  std::string owner;
  std::string hold_id;
  std::string session;
  Mode mode = Mode::kExclusive;
  uint32_t count = 0;  // of this hold
  std::string note;
  absl::Duration held_for;    // infinite: unknown (foreign)
  absl::Duration expires_in;  // infinite: never (foreign without expiry)
  bool foreign = false;       // taken by a program that uses the hash layout directly
  int64_t token = 0;          // 0: the report's
};

struct Granted {
  std::string hold_id;  // of the hold that now stands for the session; not the request's where it
                        // re-entered
  int64_t token = 0;
  uint32_t owner_count = 0;  // over all of the owner's holds
  uint32_t hold_count = 0;   // of this hold
  // From the store's executing the request: what remains of the hold. lease_remaining already minds
  // max_hold.
  absl::Duration lease_remaining;
  absl::Duration max_hold_remaining = absl::InfiniteDuration();
  bool replayed = false;
  Mode mode = Mode::kExclusive;  // of the hold: EXCLUSIVE where SHARED re-entered it
  bool more_fit = false;         // another owner could join in this mode at once
};

struct Busy {
  std::vector<HolderState> holders;  // at most kMaxHoldersInAnswer
  // The request cannot be granted by expiry before that; infinite: only by a release.
  absl::Duration free_in = absl::InfiniteDuration();
};

struct ReentryRefused {};

// The key is held in a way that the request cannot go with, however long it waits.
struct ModeRefused {
  Mode held = Mode::kExclusive;
  uint32_t limit = 0;  // with which it is held; PERMIT
};

struct Released {
  uint32_t owner_count = 0;  // what the owner still holds, over all its holds
  uint32_t hold_count = 0;   // what is left of this hold
  bool freed = false;        // the key, or one more permit of it, can be granted now
  absl::Duration kept_for;   // what was held is nobody's, but kept back that long
};

// The hold is not in the store (expired, released, flushed, never there).
struct HoldGone {
  bool held_by_other = false;  // somebody holds the key, under another hold
  uint32_t owner_count = 0;    // what the owner holds of the key through other holds
};

struct Renewed {
  absl::Duration lease_remaining;  // minds max_hold
  absl::Duration max_hold_remaining = absl::InfiniteDuration();
};

struct Forced {
  std::vector<HolderState> holders;  // whom it concerns, as they stood; at most kMaxHoldersInAnswer
  uint32_t holds = 0;                // how many were ended, or have their end fixed now
  // Until what it concerns is over and no min_hold keeps the key back; infinite: a foreign program
  // set no end. Other holds of the key may last longer.
  absl::Duration over_in;
};

struct KeyReport {
  KeyName name;
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;                // PERMIT
  int64_t token = 0;                 // 0: free, or PERMIT, where each holder has its own
  std::vector<HolderState> holders;  // empty: free, or kept back; at most kMaxHoldersInReport,
                                     // in a listing kMaxHoldersInAnswer
  uint32_t holds = 0;                // how many there are
  absl::Duration kept_for;           // > 0: nobody's, but kept back
  bool free() const { return holders.empty() && kept_for <= absl::ZeroDuration(); }
};

struct ListPage {
  std::vector<KeyReport> keys;
  std::string next_cursor;  // empty: the listing is complete
};

struct Subscribed {};

// The store grants nothing for so long, because holds that it no longer knows
// may still be valid. Renew and release work meanwhile.
struct InGrace {
  absl::Duration remaining;
};

enum class StoreFailureKind {
  kUnreachable,  // no connection, or it broke; ask again after StoreEvent::kUp
  kWrongType,    // something that is no lock is stored there; untouched
  kOutOfMemory,
  kLimit,  // `message` says which bound is reached
  kOther,  // `message` has the store's words
};

struct StoreFailure {
  StoreFailureKind kind = StoreFailureKind::kOther;
  // Whether the request may have been carried out, or may still be.
  bool maybe_applied = false;
  std::string message;
};

struct StoreReply {
  uint64_t id = 0;
  std::variant<Granted, Busy, ReentryRefused, ModeRefused, Released, HoldGone, Renewed, Forced,
               KeyReport, ListPage, Subscribed, InGrace, StoreFailure>
      result;
};

// ---- Events ---------------------------------------------------------------

struct StoreEvent {
  enum class Kind {
    kUp,     // requests can be answered (again)
    kDown,   // every request in flight has been answered kUnreachable; subscriptions are gone
    kWake,   // `name`, or a permit of it, was released or became free otherwise
    kGrace,  // a grace period began, or its end is known better: `remaining`; 0: it is over
  };
  Kind kind = Kind::kUp;
  KeyName name;
  absl::Duration remaining;
  std::string detail;  // for the log
};

}  // namespace holdfast
