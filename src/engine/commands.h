// SPDX-License-Identifier: Apache-2.0
//
// What goes into the engine (commands) and what comes out for clients (events).
//
// Every command says where its answer goes: a channel (a session's stream, or
// one unary call; numbers are the server's choice, never reused) and a
// request id within it. Each command is answered exactly once, with its answer
// or a Status (src/base/status.h), except where said otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/names.h"
#include "src/base/store_types.h"

namespace holdfast::engine {

struct ReplyTo {
  uint64_t channel = 0;
  uint64_t request_id = 0;
};

// What each command carries.
struct CommandHead {
  ReplyTo reply_to;
  // Who asks, as authenticated by the server; policy comes later.
  std::string principal;
  // When the daemon received the request: `waited` and `wait` count from here.
  BootTime received;
};

// ---- Commands -------------------------------------------------------------

// An unset optional means the default; fields not named here mean what they
// mean in proto/holdfast/v1.
struct OpenSession {
  CommandHead head;  // answered by SessionOpened or a Status; request_id is 0
  std::string client_name;
  std::string peer;  // for people
  std::optional<absl::Duration> ttl;
  std::optional<absl::Duration> lease;
  absl::Duration reconnect_grace;
  bool resume = false;  // asks for a resume, which this engine does not have yet
};

enum class Reentry { kAllow, kRefuse };
enum class Ordering { kDefault, kFifo, kBarging };

struct Acquire {
  CommandHead head;
  KeyName name;
  std::string owner;
  std::string session_id;
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;
  Reentry reentry = Reentry::kAllow;
  std::optional<absl::Duration> lease;
  absl::Duration wait;
  std::optional<absl::Duration> max_hold;  // explicit 0: no limit
  absl::Duration min_hold;
  absl::Duration feed;
  Ordering ordering = Ordering::kDefault;
  std::string note;
  std::string traceparent;
  std::string command_id;
};

struct KeyAndMode {
  std::string key;
  Mode mode = Mode::kExclusive;
  uint32_t limit = 0;
};

// Answered by AllGranted or NoneGranted, or a Status.
struct AcquireAll {
  CommandHead head;
  std::string ns;
  std::vector<KeyAndMode> keys;
  std::string owner;
  std::string session_id;
  Reentry reentry = Reentry::kAllow;
  std::optional<absl::Duration> lease;
  absl::Duration wait;
  std::optional<absl::Duration> max_hold;  // explicit 0: no limit
  absl::Duration min_hold;
  absl::Duration feed;
  Ordering ordering = Ordering::kDefault;
  std::string note;
  std::string traceparent;
  std::string command_id;
};

struct Renew {
  CommandHead head;
  KeyName name;
  std::string owner;
  std::string hold_id;
  std::optional<absl::Duration> lease;
  std::string command_id;
};

struct Release {
  CommandHead head;
  KeyName name;
  std::string owner;
  std::string hold_id;
  std::string command_id;
};

struct Feed {
  CommandHead head;  // channel: the session's stream
  std::string hold_id;
};

// Takes an acquire of the same channel back. Not answered itself; the acquire
// is answered CANCELLED unless it was answered before.
struct Cancel {
  ReplyTo target;
};

struct LostAck {
  CommandHead head;  // channel: the session's stream
  std::string hold_id;
};

// Answered by Pong.
struct Ping {
  CommandHead head;  // channel: the session's stream
};

struct Inspect {
  CommandHead head;
  KeyName name;
};

// One page. Answered by ListAnswer; go on with its cursor until that is empty.
struct List {
  CommandHead head;
  std::string ns;
  std::string prefix;
  std::string cursor;
};

// From the answer (WatchBegan) on, what happens to the keys of a namespace that begin with `prefix`
// is told as Watched, until the channel is closed.
struct Watch {
  CommandHead head;
  std::string ns;
  std::string prefix;
};

// One page of this daemon's sessions, oldest first. Answered by SessionsAnswer; go on with its
// `next` until that is 0.
struct ListSessions {
  CommandHead head;
  uint64_t after = 0;
};

// Ends a session: its waiters are refused, its holds are lost (SESSION_CLOSED). When each of them
// is acknowledged, released or over, its stream is ended. Answered by CloseSessionAnswer at once.
struct CloseSession {
  CommandHead head;
  std::string session_id;
};

// Ends holds of a key, whoever's they are. Those of this daemon's sessions are lost (FORCED); all
// others it keeps from being renewed, or with `immediate` ends. Answered by ForceAnswer.
struct ForceRelease {
  CommandHead head;
  KeyName name;
  std::string hold_id;  // empty: all of the key
  bool immediate = false;
  std::string note;  // for the log
};

// How a session's stream, or a unary call, ended.
enum class StreamEnd {
  kByClient,    // the client ended or cancelled it, or its connection was closed by its side
  kFellSilent,  // the connection broke without a word: the client may still live
};

// The channel is gone: nothing more is sent to it. A session frees what it
// holds at once (kByClient) or after its ttl; pending acquires are undone.
struct ChannelClosed {
  uint64_t channel = 0;
  StreamEnd how = StreamEnd::kByClient;
};

// The client of this stream does not read: end its session, and the stream with SLOW_READER.
struct SlowReader {
  uint64_t channel = 0;
};

// Begins the shutdown: no new sessions or acquires; at `limit` from now what
// is still held is lost (DRAINED). DrainDone follows. A second one only shortens the limit.
struct Drain {
  BootTime received;
  absl::Duration limit;
};

using Command = std::variant<OpenSession, Acquire, AcquireAll, Renew, Release, Feed, Cancel,
                             LostAck, Ping, Inspect, List, Watch, ListSessions, CloseSession,
                             ForceRelease, ChannelClosed, SlowReader, Drain>;

// ---- Events ---------------------------------------------------------------

struct SessionOpened {
  std::string session_id;
  absl::Duration ttl;
  absl::Duration lease;
};

struct Grant {
  KeyName name;
  std::string owner;
  std::string hold_id;
  Mode mode = Mode::kExclusive;
  int64_t token = 0;
  uint32_t hold_count = 0;  // over all of the owner's holds
  absl::Duration lease;
  absl::Duration waited;
  std::optional<absl::Duration> max_hold_remaining;
  std::string session_id;
  bool new_hold = false;  // it did not join one that was there; for the engine itself
};

enum class NotAcquiredReason { kBusy = 1, kWaitExpired = 2, kDeadlock = 3 };

// In a cycle of owners: this one waits for the key, which the next one holds.
struct CycleStep {
  std::string owner;
  KeyName name;
  std::string note;  // of the one who waits
};

struct NotAcquired {
  NotAcquiredReason reason = NotAcquiredReason::kBusy;
  std::vector<HolderState> holders;
  uint32_t queue_length = 0;
  std::vector<CycleStep>
      cycle;  // kDeadlock: the refused one first; the last one waits for a key of his
};

// One for each key, in the request's order. Each has a `waited` and lease of its own.
struct AllGranted {
  std::vector<Grant> grants;
};

// Of an AcquireAll: the key that could not be had, and why.
struct NoneGranted {
  KeyName busy;
  NotAcquired why;
};

struct RenewAnswer {
  absl::Duration lease;
  absl::Duration waited;
  std::optional<absl::Duration> max_hold_remaining;
};

struct ReleaseAnswer {
  uint32_t remaining_count = 0;
};

struct FeedAnswer {};
struct LostAckAnswer {};

// As v1::WaiterInLine.
struct WaiterInLine {
  std::string daemon;
  std::string owner;
  std::string note;
  Mode mode = Mode::kExclusive;
  bool fifo = false;
  absl::Duration waiting_for;
  absl::Duration gives_up_in;
};

struct InspectAnswer {
  KeyReport report;
  uint32_t queue_length = 0;
  std::vector<WaiterInLine> waiters = {};  // of an Inspect
};

struct ListAnswer {
  std::vector<InspectAnswer> keys;
  std::string next_cursor;
};

struct WatchBegan {};

struct SessionState {
  std::string session_id;
  std::string client_name;
  std::string principal;
  std::string peer;
  absl::Duration age;
  absl::Duration since_last_ping;
  absl::Duration ttl;  // zero: the stream alone stands for it
  uint32_t holds = 0;
  uint32_t waiting = 0;
  bool connected = false;  // false: its stream broke, its ttl is being waited for
  bool closing = false;    // an operator closed it, and its holds are not over yet
};

struct SessionsAnswer {
  std::vector<SessionState> sessions;
  uint64_t next = 0;
};

struct CloseSessionAnswer {
  uint32_t holds = 0;          // how many it had
  absl::Duration over_within;  // they can be granted on after that at the latest
};

struct ForceAnswer {
  Forced forced;
  bool overlap_possible = false;  // somebody may still be working under what was ended
};

// Answers the command `request_id` of the event's channel.
struct Reply {
  uint64_t request_id = 0;
  std::variant<Grant, NotAcquired, AllGranted, NoneGranted, RenewAnswer, ReleaseAnswer, FeedAnswer,
               LostAckAnswer, InspectAnswer, ListAnswer, WatchBegan, SessionsAnswer,
               CloseSessionAnswer, ForceAnswer, absl::Status>
      result;
};

struct Pong {
  uint64_t request_id = 0;
  std::optional<absl::Duration> valid_for;
};

using holdfast::LossReason;

struct Lost {
  KeyName name;
  std::string owner;
  std::string hold_id;
  int64_t token = 0;
  LossReason reason = LossReason::kLeaseExpired;
};

struct Contended {
  KeyName name;
  std::string hold_id;
};

// To who watches. Without news: some may have been missed before this.
struct Watched {
  std::shared_ptr<const KeyNews> news;
};

struct Draining {
  absl::Duration limit;
};

// End this stream, after everything that was sent to it before, with this status.
struct EndStream {
  absl::Status status;
};

// Nothing is held and nothing is owed to the store any more, or the time for
// it is over: the daemon may exit. Channel 0.
struct DrainDone {
  uint32_t left_to_lease = 0;  // holds that nobody acknowledged as lost
};

struct Event {
  uint64_t channel = 0;
  std::variant<SessionOpened, Reply, Pong, Lost, Contended, Watched, Draining, EndStream, DrainDone>
      body;
};

}  // namespace holdfast::engine
