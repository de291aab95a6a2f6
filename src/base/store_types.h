// SPDX-License-Identifier: Apache-2.0
//
// What the engine asks of a store, and what a store answers. Engine and stores
// share these types and nothing else. Semantics are those of src/store/store.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/base/key_news.h"
#include "src/base/names.h"

namespace holdfast {

// Names one hold and who claims it. A store changes a hold only where owner,
// hold_id, session and epoch are all those of its record.
struct HoldRef {
  KeyName name;
  std::string owner;
  std::string hold_id;
  std::string session;  // empty: a bare lease
  uint32_t epoch = 1;
};

// A place in a key's line, which all daemons on a store share.
struct Place {
  std::string daemon;   // this life of the daemon whose waiter it is; empty: no place
  uint64_t number = 0;  // FIFO: one for each waiter, counted by its daemon; 0: where all BARGING
                        // waiters of a daemon stand
  friend bool operator==(const Place&, const Place&) = default;
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
//  * Otherwise held by somebody else, or kept back: Busy; nothing changes but the line.
//  * A place in the key's line: Busy takes it if `enters`, Granted leaves it if `leaves`. A free
//  key
//    that another daemon's place is first of goes to no FIFO place: it is handed to that (as
//    Released::handed_to says), and this is Busy. The place of a daemon counts whatever its number
//    is: in which order its own waiters try is its business.
//  * While an EXCLUSIVE request has said within kWriterPatience that it waits (will_wait, and
//  Busy),
//    no owner joins SHARED or PERMIT who does not hold the key yet: Busy.
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
  bool untold = false;          // on Granted: those who watch are not told; a TellOp may follow
  Place place;                  // needed for what follows, and for a FIFO request
  bool enters = false;  // on Busy: stands at the end of the line, unless it stands there already
  bool leaves = false;  // on Granted: leaves the line,
  bool stays = false;   // or, with `leaves`, goes to its end: others wait at the same place
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
// A key that is wholly free then is handed to the first in its line, unless the next request to the
// store is an AcquireOp of the same key (FollowsRelease): that one is carried out in the same step.
struct ReleaseOp {
  HoldRef hold;
  ReleaseKind kind = ReleaseKind::kOne;
  std::string op_id;
};

// Looks after a line. A key that nobody has then goes to the next. Answered by Released.
struct PassOnOp {
  enum class Kind {
    kWriterGone,  // the EXCLUSIVE request that said that it waits does not any more
    kLeave,       // the place is given up, and so is that
    kLeaveAll,    // and every other of its daemon
    kUnclaimed,   // its daemon was handed the key some time ago: where nobody has the key, it did
                  // not claim it, and is passed over until its next sign of life
  };
  KeyName name;
  Place place;
  Kind kind = Kind::kLeave;
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

// From the answer (Subscribed) on, what happens to the keys of this store, whichever daemon does
// it, is told as StoreEvent::kNews, in the order in which it happened to each key. Where some of it
// may have been missed, kNewsMissed comes in its place. A store that does not see a hold end looks
// out for the ends of those that are there already, too, of the keys of `ns` that begin with
// `prefix`; news of others come all the same.
struct WatchOp {
  std::string ns;
  std::string prefix;
};

// Ends all of that. Has no answer.
struct UnwatchOp {};

// Tells those who watch, in whichever daemon, of what the store cannot know. Has no answer.
struct TellOp {
  KeyNews news;
};

struct StoreRequest {
  // Chosen by the engine, never 0; its answer carries the same.
  uint64_t id = 0;
  std::variant<AcquireOp, ReleaseOp, PassOnOp, RenewOp, ForceOp, InspectOp, ListOp, SubscribeOp,
               UnsubscribeOp, WatchOp, UnwatchOp, TellOp>
      op;
};

// Whether `next` is an attempt of the same key, which a store carries out in one step with the
// release in front of it.
inline bool FollowsRelease(const StoreRequest& release, const StoreRequest& next) {
  const auto* given = std::get_if<ReleaseOp>(&release.op);
  const auto* taken = std::get_if<AcquireOp>(&next.op);
  return given != nullptr && taken != nullptr && given->hold.name == taken->hold.name;
}

inline bool HasAnswer(const StoreRequest& request) {
  return !std::holds_alternative<UnsubscribeOp>(request.op) &&
         !std::holds_alternative<UnwatchOp>(request.op) &&
         !std::holds_alternative<TellOp>(request.op);
}

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
  // The ownership is new, and another daemon's waiter stands first in line.
  bool others_first = false;
};

struct Busy {
  std::vector<HolderState> holders;  // at most kMaxHoldersInAnswer
  // The request cannot be granted by expiry before that; infinite: only by a release.
  absl::Duration free_in = absl::InfiniteDuration();
  std::string handed_to = {};  // as in Released: whose the key is for free_in
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
  // The daemon whose place is first in line: it is told by kWake, and nobody else gets the key for
  // kept_for (at most kClaimTime). If it does not claim it, somebody has to pass it on
  // (kUnclaimed).
  std::string handed_to = {};
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
  // The first kMaxWaitersInReport of those whose daemons live; none in a listing.
  std::vector<Place> line = {};
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
    kUp,          // requests can be answered (again)
    kDown,        // every request in flight has been answered kUnreachable; subscriptions are gone
    kWake,        // `name`, or a permit of it, was released or became free otherwise; for
                  // `daemon` alone where that is set
    kGrace,       // a grace period began, or its end is known better: `remaining`; 0: it is over
    kNews,        // of WatchOp: `news`
    kNewsMissed,  // of WatchOp: some may have been missed before this
    kAudience,    // whether somebody watches, in whichever daemon, is known anew: `watched`
  };
  Kind kind = Kind::kUp;
  KeyName name;
  absl::Duration remaining;
  std::string detail;       // for the log
  std::string daemon = {};  // kWake
  bool watched = false;
  std::shared_ptr<const KeyNews> news = nullptr;
};

}  // namespace holdfast
