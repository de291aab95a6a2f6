// SPDX-License-Identifier: Apache-2.0
//
// The inside of the engine. One class, because sessions, holds and lines change
// together; its parts are a file each:
//   sessions.cc   streams: open, ping, end
//   acquire.cc    from a request to a place in line, and out of it again
//   line.cc       a key's steps at the store, one after the other; waking
//   store_line.cc the line that all daemons on the store share
//   grants.cc     what the store answered to an attempt to take a key
//   release.cc    release, renew by hand, feed, lost_ack
//   watchdog.cc   renewals, the end of leases, max hold, missed feeds, loss
//   acquire_all.cc  several keys, all or nothing
//   retries.cc    commands that come again
//   status.cc     inspect, list, drain, bookkeeping checks
//   waits.cc      who waits for whom, and cycles of that
//   watching.cc   what watchers hear, and what is told to them
//   admin.cc      what an operator does to sessions and holds
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "src/engine/acquire_all.h"
#include "src/engine/command_log.h"
#include "src/engine/deadlock.h"
#include "src/engine/engine.h"
#include "src/engine/records.h"
#include "src/engine/timers.h"
#include "src/engine/watches.h"

namespace holdfast::engine {

// The records in the order in which they came to be. What happens must not hang on a hash: it
// would be another order in each run.
template <typename Records>
std::vector<LocalId> InOrder(const Records& records) {
  std::vector<LocalId> ids;
  ids.reserve(records.size());
  for (const auto& [id, record] : records) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

class EngineCore {
 public:
  EngineCore(EngineOptions options, IdSource* ids);

  // Each is one input. `now_` is set by Engine before.
  void Handle(OpenSession command);
  void Handle(Acquire command);
  void Handle(AcquireAll command);
  void Handle(Renew command);
  void Handle(Release command);
  void Handle(Feed command);
  void Handle(Cancel command);
  void Handle(LostAck command);
  void Handle(Ping command);
  void Handle(Inspect command);
  void Handle(List command);
  void Handle(engine::Watch command);
  void Handle(ListSessions command);
  void Handle(CloseSession command);
  void Handle(ForceRelease command);
  void Handle(ChannelClosed command);
  void Handle(SlowReader command);
  void Handle(Drain command);
  void OnReply(StoreReply& reply);
  void OnStoreEvent(const StoreEvent& event);
  void Advance();

  void set_now(BootTime now) { now_ = now; }
  // After each input: forgets lines that nothing needs any more. So no line
  // vanishes under the feet of the code that works on it.
  void FinishInput();
  BootTime NextDeadline() const { return timers_.Next(); }
  void TakeOutput(Output* out);
  EngineStatus status() const;
  std::optional<std::string> FindInconsistency() const;

 private:
  // What a store request in flight is for.
  struct Pending {
    enum class Kind {
      kLine,
      kWatchdog,
      kClientRenew,
      kInspect,
      kList,
      kSubscribe,
      kForce,
      kLook,
      kWatch
    };
    Kind kind = Kind::kLine;
    LocalId line = 0;             // kLine, kSubscribe, kLook
    LocalId hold = 0;             // kWatchdog, kClientRenew
    std::vector<Caller> callers;  // kClientRenew, kInspect, kList, kForce
    bool immediate = false;       // kForce
    uint64_t channel = 0;         // kWatch
    std::string log_key;          // kClientRenew
    BootTime sent;
  };
  using Answer = decltype(Reply::result);

  // ---- out: answers and requests (core.cc)
  void Send(uint64_t channel, decltype(Event::body) body);
  void Answer1(ReplyTo to, Answer answer);
  void AnswerAll(absl::Span<const Caller> callers, const Answer& answer);
  uint64_t Submit(decltype(StoreRequest::op) op, Pending pending);

  // ---- sessions.cc
  Session* FindSession(absl::string_view session_id);
  Session* SessionOfChannel(uint64_t channel);
  Session* SessionById(LocalId id);
  // A command on a session's own stream is that session's; others may name one. OK with null: a
  // bare lease.
  absl::Status OwnSession(ReplyTo reply_to, std::string* session_id, Session** session);
  absl::Status NamedSession(const std::string& session_id, Session** session);
  void ArmSession(Session& session);
  void OnSessionTimer(LocalId id);
  // Gives back everything and forgets the session. With a status the stream
  // (where there is one) is told of each loss and then ended.
  void EndSession(Session& session, const absl::Status& status);
  // Forgets a session whose holds are given back, or about to be.
  void ForgetSession(Session& session, const absl::Status& status);
  void FailWaiters(Session& session, const absl::Status& status);

  // ---- acquire.cc
  void StartWaiter(std::unique_ptr<Waiter> waiter);
  // Notes whose call or stream it is that the waiter answers.
  void Book(const Waiter& waiter, ReplyTo caller);
  Waiter* WaiterById(LocalId id);
  LineOp TakeOp(const Waiter& waiter, LineOp::Kind kind);
  // Takes a waiter out of its line and out of the books, after its answer. A
  // step in flight for it is undone when its answer comes.
  void RemoveWaiter(Waiter& waiter, bool wake_next = true);
  void ForgetWaiter(Waiter& waiter);  // without looking at who comes next
  void AnswerWaiter(Waiter& waiter, Answer answer);
  void OnWaiterTimer(LocalId id);
  static absl::Status StoreUnreachable();
  static absl::Status StatusOf(const StoreFailure& failure);
  absl::Status GraceStatus() const;
  NotAcquired Refusal(const Waiter& waiter, NotAcquiredReason reason);
  std::vector<HolderState> HoldersOf(const Line& line) const;
  // Whether this engine holds the key, and so nobody else does anywhere.
  bool HeldAlone(const Line& line) const;
  Hold* HoldOf(LocalId session, const Line& line, absl::string_view owner);

  // ---- line.cc
  Line& LineOf(const KeyName& name);
  Line* LineById(LocalId id);
  void Pump(Line& line);
  void SendOp(Line& line, LineOp& op);
  absl::Duration ReleaseDelayOf(const KeyName& name) const;
  // Drops a probe that the line answers by itself by now.
  bool SkipProbe(Line& line, const LineOp& op);
  // Whether the head of the line should try in the same step of the store as `op`.
  bool HandsOver(const Line& line, const LineOp& op) const;
  // Somebody may take the key now: let the head try.
  void Wake(Line& line);
  void WakeAll();
  void PushTry(Line& line);
  LineOp* QueuedTry(Line& line);
  void RetryAt(Line& line, BootTime at);
  void ArmLine(Line& line, BootTime at);
  void OnLineTimer(LocalId id);
  void Watch(Line& line);
  // Unsubscribes and forgets the line at the end of this input, where nothing needs it.
  void MayBeIdle(Line& line) { maybe_idle_.push_back(line.id); }
  void OnLineReply(Line& line, StoreReply& reply);
  void OnUnreachable(Line& line, std::list<LineOp>::iterator op, const StoreFailure& failure);
  void FailTriesThatDoNotWait(Line& line);
  // The caller of this step gives up: take the step back, or undo it when it is known.
  void AbandonOp(Line& line, std::list<LineOp>::iterator op);
  void OnStoreUp();
  void OnStoreDown();

  // ---- store_line.cc: the line that all daemons share
  void StandInLine(Line& line, Waiter& waiter);
  void LeaveLine(Line& line, Waiter& waiter);
  // Where the waiter stands, or is to stand, in the store's line.
  void SetPlace(const Line& line, const Waiter& waiter, LineOp& op, AcquireOp& take);
  // The attempt was in vain, or may have been.
  void Entered(Line& line, const LineOp& op);
  void HasLeft(Line& line, Waiter& waiter, const LineOp& op, const Granted& granted);
  // Whether a release may go to the head of this line while others stand in the store's.
  bool MayKeepAmongOwn(const Line& line) const;
  void PassOn(Line& line, Place place, PassOnOp::Kind kind);
  // The store keeps the key for that daemon; empty: it does not.
  void HandedOn(Line& line, const std::string& daemon, absl::Duration kept_for);
  void CheckClaim(Line& line);
  void OnPassOnReply(Line& line, const LineOp& op, const StoreReply& reply);
  void OnWake(const StoreEvent& event);

  // ---- grants.cc
  void OnTakeReply(Line& line, const LineOp& op, StoreReply& reply);
  void OnGranted(Line& line, const LineOp& op, const Granted& granted);
  void OnBusy(Line& line, const LineOp& op, Busy& busy);
  void OnInGrace(Line& line, const LineOp& op, absl::Duration remaining);
  void OnTakeFailure(Line& line, const LineOp& op, const StoreFailure& failure);
  // The next in line may hold beside the one who was just granted.
  bool NextFits(const Line& line, const Granted& granted);
  static absl::Status StatusOf(const ModeRefused& refused, const Acquire& asked);
  Hold& RecordGrant(Line& line, const Waiter& waiter, const LineOp& op, const Granted& granted);
  void PushUndo(Line& line, const LineOp& op);
  void TellContended(Line& line);

  // ---- release.cc
  Hold* FindHold(absl::string_view hold_id);
  Hold* HoldById(LocalId id);
  void OnReleaseReply(Line& line, LineOp op, StoreReply& reply);
  void AfterRelease(Line& line, const Released& released);
  void TakeOneOff(Line& line, const LineOp& undo, Hold& hold);
  void OnGiveBackReply(Line& line, const LineOp& op, const StoreReply& reply);
  void OnClientRenewReply(Pending pending, StoreReply& reply);
  void FinishRelease(LineOp& op, Answer answer, bool had_effect);
  // The hold is over for this engine; its line may go with it.
  void DropHold(Hold& hold);
  // Drops the hold and has the store give it back.
  void GiveBack(Hold& hold);

  // ---- watchdog.cc
  void ArmHold(Hold& hold);
  void OnHoldTimer(LocalId id);
  void Renew1(Hold& hold);
  static BootTime NextRenewal(const Hold& hold, BootTime from);
  void OnWatchdogReply(LocalId hold, BootTime sent, StoreReply& reply);
  // Tells the holder. `gone`: the store does not have it any more; else it is
  // kept from renewal until lost_ack or the end of its lease.
  void Lose(Hold& hold, LossReason reason, bool gone);
  BootTime ValidityEnd(const Hold& hold) const;

  // ---- acquire_all.cc
  AcquireSet* SetById(LocalId id);
  void BookSet(AcquireSet& set, const Caller& caller);
  // Goes for the next key, or answers where there is none.
  void GoOn(AcquireSet& set);
  void TryMember(AcquireSet& set, size_t member);
  // With nothing held, in the line of `first`.
  void StartOver(AcquireSet& set, size_t first);
  // Of one of the acquires that the sets have under way.
  void OnSetAnswer(uint64_t request, Answer& answer);
  void OnMemberRefused(AcquireSet& set, const Answer& answer);
  bool AllStillHeld(const AcquireSet& set);
  void Complete(AcquireSet& set);
  void CompleteMember(const AcquireSet& set, Grant& grant, BootTime complete);
  // Undoes what is held.
  void GiveBackMembers(AcquireSet& set);
  void UndoMember(const AcquireSet& set, const Grant& grant);
  // Takes back what it has and had under way, answers and forgets it.
  void EndSet(AcquireSet& set, const Answer& answer);
  void ForgetSet(AcquireSet& set);
  void DropCaller(AcquireSet& set, ReplyTo to);
  void CancelSet(ReplyTo target);
  void OnSetChannelClosed(uint64_t channel);
  void OnSetTimer(LocalId id);

  // ---- retries.cc
  // How many commands a hold keeps from being forgotten while it lives.
  static constexpr size_t kPinnedCommands = 64;
  // Whether the command was answered, or joined to its first copy, here.
  bool AnsweredBefore(Acquire& command, const std::string& key, std::unique_ptr<Waiter>& waiter);
  bool AnsweredBefore(AcquireAll& command, const std::string& key, AcquireSet& set);
  bool AnsweredBefore(const Release& command, const std::string& key);
  bool AnsweredBefore(const Renew& command, const std::string& key);
  Answer CopyOf(const LoggedAnswer& logged, const Caller& caller);
  std::string EngineOpId();
  static uint64_t DigestOf(const Acquire& command);
  static uint64_t DigestOf(const AcquireAll& command);

  // ---- status.cc
  void OnInspectReply(const Pending& pending, StoreReply& reply);
  void OnListReply(const Pending& pending, StoreReply& reply);
  InspectAnswer WithQueue(KeyReport report) const;
  // Everybody who waits, as far as this engine and the store know.
  void AddWaiters(InspectAnswer& answer) const;
  void OnDrainTimer();
  void CheckDrained();

  // ---- waits.cc
  void NoteWait(const Waiter& waiter);
  void ForgetWait(const Waiter& waiter);
  std::vector<WaitEdge> EdgesOf(LocalId waiter);
  // Refuses waiters until no cycle goes through this one, or asks who holds what.
  void BreakCycles(LocalId start, size_t* budget);
  void BreakCyclesOf(const std::string& owner, size_t* budget);
  void RefuseNewest(std::vector<LocalId> cycle);
  // A waiter has begun to wait, goes on waiting, or was granted its key; and who holds a key is
  // known anew: both may close a cycle.
  void AfterTry(Line& line, const LineOp& op, bool granted);
  void AfterLook(Line& line, size_t* budget);
  void LookAgain(Line& line);
  void OnLookReply(const Pending& pending, StoreReply& reply);

  // ---- watching.cc
  void AskToWatch(Watcher& watcher);
  void OnWatchReply(const Pending& pending, const StoreReply& reply);
  void StopWatching(uint64_t channel);
  void OnNews(const StoreEvent& event);
  void OnNewsMissed();
  void SuspendWatches();
  void ResumeWatches();
  // To whoever watches, in whichever daemon; nothing where nobody does, as far as is known. What
  // the store does by itself it also tells by itself.
  void Tell(KeyNews news);
  static KeyNews NewsOf(KeyNews::Kind kind, const Hold& hold);
  void TellLost(const Hold& hold, LossReason reason);
  // Before the store is told to end a hold that its owner did not release.
  void TellEnd(const Hold& hold);
  void TellWaiting(Waiter& waiter);  // once
  // Of a set that is complete.
  void TellGranted(const AcquireSet& set, const SetMember& member);

  // ---- admin.cc
  SessionState StateOf(const Session& session) const;
  // Ends sessions that an operator closed and whose holds are over, at the end of an input.
  void EndClosedSessions();
  void TellForced(const ForceRelease& command);
  void OnForceReply(const Pending& pending, StoreReply& reply);
  // Whether somebody has fixed this hold's end: its max hold is nearer than it was granted.
  bool WasForced(const Hold& hold, const Renewed& renewed) const;

  EngineOptions options_;
  IdSource* ids_;
  std::string life_;  // in the op ids that this engine makes
  BootTime now_;
  Output out_;
  TimerQueue timers_;
  CommandLog log_;

  LocalId last_id_ = 0;
  uint64_t last_request_ = 0;
  uint64_t last_op_ = 0;
  uint64_t last_number_ = 0;  // of a FIFO place

  absl::flat_hash_map<LocalId, std::unique_ptr<Session>> sessions_;
  absl::btree_set<LocalId> session_order_;  // for listings
  absl::flat_hash_map<std::string, LocalId> session_ids_;
  absl::flat_hash_map<uint64_t, LocalId> session_channels_;

  absl::flat_hash_map<LocalId, std::unique_ptr<Hold>> holds_;
  absl::flat_hash_map<std::string, LocalId> hold_ids_;

  absl::flat_hash_map<LocalId, std::unique_ptr<Waiter>> waiters_;
  // Channel and request id, of every caller of every waiter.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, LocalId> waiter_of_;
  // The same by channel, for those that are no session's.
  absl::flat_hash_map<uint64_t, absl::btree_set<LocalId>> channel_waiters_;

  // Of owners who may hold something.
  absl::flat_hash_map<std::string, absl::btree_set<LocalId>> owner_waits_;
  absl::flat_hash_map<LocalId, std::unique_ptr<AcquireSet>> sets_;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, LocalId> set_of_;  // as waiter_of_
  absl::flat_hash_map<uint64_t, absl::btree_set<LocalId>> channel_sets_;
  absl::flat_hash_map<uint64_t, LocalId> set_requests_;  // of the acquires under way
  // What those were answered; worked on at the end of the input.
  std::deque<Reply> set_answers_;

  absl::flat_hash_map<LocalId, std::unique_ptr<Line>> lines_;
  absl::flat_hash_map<KeyName, LocalId> line_ids_;
  std::vector<LocalId> maybe_idle_;
  std::vector<LocalId> maybe_closed_;  // closing sessions that lost a hold in this input

  absl::flat_hash_map<uint64_t, Pending> pending_;

  Watches watches_;
  bool audience_ = false;  // somebody watches, at another daemon maybe

  bool store_up_ = false;
  BootTime grace_until_;
  bool draining_ = false;
  bool drain_over_ = false;  // the limit has passed: what is left was told
  bool drain_done_ = false;
  BootTime drain_at_ = BootTime::Infinite();
};

}  // namespace holdfast::engine
