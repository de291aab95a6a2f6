// SPDX-License-Identifier: Apache-2.0
//
// The way out: answers, events and errors as messages.
#include "server/front/convert.h"
#include "src/base/limits.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// Reasons go through by number.
#define SAME_REASON(constant, name) \
  static_assert(int{v1::ERROR_REASON_##name} == static_cast<int>(Reason::constant))
SAME_REASON(kInvalidField, INVALID_FIELD);
SAME_REASON(kNotOwner, NOT_OWNER);
SAME_REASON(kLeaseExpired, LEASE_EXPIRED);
SAME_REASON(kReentryRefused, REENTRY_REFUSED);
SAME_REASON(kWrongType, WRONG_TYPE);
SAME_REASON(kSessionNotFound, SESSION_NOT_FOUND);
SAME_REASON(kStoreUnreachable, STORE_UNREACHABLE);
SAME_REASON(kGracePeriod, GRACE_PERIOD);
SAME_REASON(kDraining, DRAINING);
SAME_REASON(kStoreOutOfMemory, STORE_OUT_OF_MEMORY);
SAME_REASON(kLimitReached, LIMIT_REACHED);
SAME_REASON(kCommandForgotten, COMMAND_FORGOTTEN);
SAME_REASON(kCancelled, CANCELLED);
SAME_REASON(kUnsupported, UNSUPPORTED);
SAME_REASON(kSessionExpired, SESSION_EXPIRED);
SAME_REASON(kStoreError, STORE_ERROR);
SAME_REASON(kSlowReader, SLOW_READER);
SAME_REASON(kCommandMismatch, COMMAND_MISMATCH);
SAME_REASON(kSessionClosed, SESSION_CLOSED);
SAME_REASON(kUpgradeRefused, UPGRADE_REFUSED);
SAME_REASON(kLimitMismatch, LIMIT_MISMATCH);
SAME_REASON(kModeMismatch, MODE_MISMATCH);
#undef SAME_REASON
static_assert(int{v1::ErrorReason_MAX} == static_cast<int>(Reason::kLast));

#define SAME_LOSS(constant, name) \
  static_assert(int{v1::LOSS_REASON_##name} == static_cast<int>(engine::LossReason::constant))
SAME_LOSS(kLeaseExpired, LEASE_EXPIRED);
SAME_LOSS(kMaxHold, MAX_HOLD);
SAME_LOSS(kForced, FORCED);
SAME_LOSS(kStoreLostIt, STORE_LOST_IT);
SAME_LOSS(kTakenOver, TAKEN_OVER);
SAME_LOSS(kFeedMissed, FEED_MISSED);
SAME_LOSS(kSessionClosed, SESSION_CLOSED);
SAME_LOSS(kDrained, DRAINED);
#undef SAME_LOSS
static_assert(v1::LossReason_MAX == v1::LOSS_REASON_DRAINED);

static_assert(int{v1::NOT_ACQUIRED_REASON_BUSY} ==
              static_cast<int>(engine::NotAcquiredReason::kBusy));
static_assert(int{v1::NOT_ACQUIRED_REASON_WAIT_EXPIRED} ==
              static_cast<int>(engine::NotAcquiredReason::kWaitExpired));
static_assert(int{v1::NOT_ACQUIRED_REASON_DEADLOCK} ==
              static_cast<int>(engine::NotAcquiredReason::kDeadlock));

v1::WatchEventKind KindOf(KeyNews::Kind kind) {
  switch (kind) {
    case KeyNews::Kind::kGranted:
      return v1::WATCH_EVENT_KIND_GRANTED;
    case KeyNews::Kind::kReleased:
    case KeyNews::Kind::kUndone:
      return v1::WATCH_EVENT_KIND_RELEASED;
    case KeyNews::Kind::kLost:
      return v1::WATCH_EVENT_KIND_LOST;
    case KeyNews::Kind::kWaiting:
      return v1::WATCH_EVENT_KIND_WAITING;
  }
  return v1::WATCH_EVENT_KIND_UNSPECIFIED;
}

// `token` is 0 where it is not known.
void HolderToMessage(const HolderState& holder, int64_t token, v1::Holder& to) {
  to.set_owner_fingerprint(OwnerFingerprint(holder.owner));
  to.set_hold_id(holder.hold_id);
  to.set_mode(static_cast<v1::Mode>(holder.mode));
  to.set_note(holder.note);
  if (holder.held_for != absl::InfiniteDuration()) {
    ToMessage(holder.held_for, *to.mutable_held_for());
  }
  if (holder.expires_in != absl::InfiniteDuration()) {
    ToMessage(holder.expires_in, *to.mutable_expires_in());
  }
  to.set_hold_count(holder.count);
  to.set_fencing_token(token);
  to.set_has_session(!holder.session.empty());
  to.set_foreign(holder.foreign);
}

void GrantToMessage(const engine::Grant& grant, v1::Grant& message) {
  message.set_namespace_(grant.name.ns);
  message.set_key(grant.name.key);
  message.set_owner(grant.owner);
  message.set_hold_id(grant.hold_id);
  message.set_mode(static_cast<v1::Mode>(grant.mode));
  message.set_fencing_token(grant.token);
  message.set_hold_count(grant.hold_count);
  ToMessage(grant.lease, *message.mutable_lease());
  ToMessage(grant.waited, *message.mutable_waited());
  if (grant.max_hold_remaining.has_value()) {
    ToMessage(*grant.max_hold_remaining, *message.mutable_max_hold_remaining());
  }
  message.set_session_id(grant.session_id);
  ToMessage(SafetyMargin(grant.lease), *message.mutable_safety_margin());
}

// `to`: the answer to an acquire, or to one of several keys.
template <typename Message>
void RefusalToMessage(const engine::NotAcquired& answer, Message& to) {
  to.set_outcome(v1::OUTCOME_NOT_ACQUIRED);
  to.set_reason(static_cast<v1::NotAcquiredReason>(answer.reason));
  for (const HolderState& holder : answer.holders) HolderToMessage(holder, 0, *to.add_holders());
  to.set_queue_length(answer.queue_length);
  for (const engine::CycleStep& step : answer.cycle) {
    v1::CycleStep& message = *to.add_cycle();
    message.set_namespace_(step.name.ns);
    message.set_key(step.name.key);
    message.set_owner_fingerprint(OwnerFingerprint(step.owner));
    message.set_note(step.note);
  }
}

// One result of a stream's reply.
struct ReplyToMessage {
  v1::SessionReply& to;

  void operator()(const engine::Grant& grant) { ToMessage(grant, *to.mutable_acquire()); }
  void operator()(const engine::NotAcquired& answer) { ToMessage(answer, *to.mutable_acquire()); }
  void operator()(const engine::AllGranted& all) { ToMessage(all, *to.mutable_acquire_all()); }
  void operator()(const engine::NoneGranted& none) { ToMessage(none, *to.mutable_acquire_all()); }
  void operator()(const engine::RenewAnswer& answer) { ToMessage(answer, *to.mutable_renew()); }
  void operator()(const engine::ReleaseAnswer& answer) { ToMessage(answer, *to.mutable_release()); }
  void operator()(const engine::FeedAnswer&) { to.mutable_feed(); }
  void operator()(const engine::LostAckAnswer&) { to.mutable_lost_ack(); }
  void operator()(const absl::Status& status) { ToMessage(status, *to.mutable_error()); }
  // Not commands of a stream.
  void operator()(const engine::InspectAnswer&) {}
  void operator()(const engine::ListAnswer&) {}
  void operator()(const engine::WatchBegan&) {}
  void operator()(const engine::SessionsAnswer&) {}
  void operator()(const engine::CloseSessionAnswer&) {}
  void operator()(const engine::ForceAnswer&) {}
};

struct EventToMessage {
  v1::SessionEvent& to;

  void operator()(const engine::Reply& reply) {
    to.mutable_reply()->set_request_id(reply.request_id);
    std::visit(ReplyToMessage{*to.mutable_reply()}, reply.result);
  }
  void operator()(const engine::Pong& pong) {
    to.mutable_pong()->set_request_id(pong.request_id);
    if (pong.valid_for.has_value()) {
      ToMessage(*pong.valid_for, *to.mutable_pong()->mutable_valid_for());
    }
  }
  void operator()(const engine::Lost& lost) { ToMessage(lost, *to.mutable_lost()); }
  void operator()(const engine::Contended& contended) {
    to.mutable_contended()->set_key(contended.name.key);
    to.mutable_contended()->set_namespace_(contended.name.ns);
    to.mutable_contended()->set_hold_id(contended.hold_id);
  }
  void operator()(const engine::Watched&) {}  // to a call of its own
  void operator()(const engine::Draining& draining) {
    ToMessage(draining.limit, *to.mutable_draining()->mutable_limit());
  }
  void operator()(const engine::SessionOpened&) {}
  void operator()(const engine::EndStream&) {}
  void operator()(const engine::DrainDone&) {}
};

}  // namespace

void ToMessage(const engine::Grant& grant, v1::AcquireResponse& to) {
  to.set_outcome(v1::OUTCOME_ACQUIRED);
  GrantToMessage(grant, *to.mutable_grant());
}

void ToMessage(const engine::NotAcquired& answer, v1::AcquireResponse& to) {
  RefusalToMessage(answer, to);
}

void ToMessage(const engine::AllGranted& answer, v1::AcquireAllResponse& to) {
  to.set_outcome(v1::OUTCOME_ACQUIRED);
  for (const engine::Grant& grant : answer.grants) GrantToMessage(grant, *to.add_grants());
}

void ToMessage(const engine::NoneGranted& answer, v1::AcquireAllResponse& to) {
  RefusalToMessage(answer.why, to);
  to.set_busy_key(answer.busy.key);
}

void ToMessage(const engine::RenewAnswer& answer, v1::RenewResponse& to) {
  ToMessage(answer.lease, *to.mutable_lease());
  ToMessage(answer.waited, *to.mutable_waited());
  if (answer.max_hold_remaining.has_value()) {
    ToMessage(*answer.max_hold_remaining, *to.mutable_max_hold_remaining());
  }
  ToMessage(SafetyMargin(answer.lease), *to.mutable_safety_margin());
}

void ToMessage(const engine::ReleaseAnswer& answer, v1::ReleaseResponse& to) {
  to.set_remaining_count(answer.remaining_count);
}

void ToMessage(const engine::WaiterInLine& waiter, v1::WaiterInLine& to) {
  to.set_daemon(waiter.daemon);
  to.set_ordering(waiter.fifo ? v1::ORDERING_FIFO : v1::ORDERING_BARGING);
  if (!waiter.daemon.empty()) return;
  to.set_owner_fingerprint(OwnerFingerprint(waiter.owner));
  to.set_note(waiter.note);
  to.set_mode(static_cast<v1::Mode>(waiter.mode));
  ToMessage(waiter.waiting_for, *to.mutable_waiting_for());
  ToMessage(waiter.gives_up_in, *to.mutable_gives_up_in());
}

void ToMessage(const engine::InspectAnswer& answer, v1::KeyState& to) {
  const KeyReport& report = answer.report;
  to.set_key(report.name.key);
  to.set_free(report.free());
  to.set_mode(report.free() ? v1::MODE_UNSPECIFIED : static_cast<v1::Mode>(report.mode));
  to.set_limit(report.free() ? 0 : report.limit);
  to.set_fencing_token(report.free() ? 0 : report.token);
  to.set_holder_count(report.holds);
  for (const HolderState& holder : report.holders) {
    HolderToMessage(holder, holder.token != 0 ? holder.token : report.token, *to.add_holders());
  }
  to.set_queue_length(answer.queue_length);
  for (const engine::WaiterInLine& waiter : answer.waiters) ToMessage(waiter, *to.add_waiters());
  if (report.kept_for > absl::ZeroDuration()) ToMessage(report.kept_for, *to.mutable_kept_for());
}

void ToMessage(const engine::SessionState& session, v1::SessionInfo& to) {
  to.set_session_id(session.session_id);
  to.set_client_name(session.client_name);
  to.set_principal(session.principal);
  to.set_peer(session.peer);
  ToMessage(session.age, *to.mutable_age());
  ToMessage(session.since_last_ping, *to.mutable_since_last_ping());
  ToMessage(session.ttl, *to.mutable_ttl());
  to.set_holds(session.holds);
  to.set_waiting(session.waiting);
  to.set_connected(session.connected);
  to.set_closing(session.closing);
}

void ToMessage(const engine::CloseSessionAnswer& answer, v1::CloseSessionResponse& to) {
  to.set_ended(answer.holds);
  ToMessage(answer.over_within, *to.mutable_free_within());
}

void ToMessage(const engine::ForceAnswer& answer, v1::ForceReleaseResponse& to) {
  to.set_ended(answer.forced.holds);
  if (answer.forced.over_in != absl::InfiniteDuration()) {
    ToMessage(answer.forced.over_in, *to.mutable_free_within());
  }
  to.set_overlap_possible(answer.overlap_possible);
  for (const HolderState& holder : answer.forced.holders) {
    HolderToMessage(holder, 0, *to.add_holders());
  }
}

void ToMessage(const engine::Lost& lost, v1::Lost& to) {
  to.set_namespace_(lost.name.ns);
  to.set_key(lost.name.key);
  to.set_owner(lost.owner);
  to.set_hold_id(lost.hold_id);
  to.set_fencing_token(lost.token);
  to.set_reason(static_cast<v1::LossReason>(lost.reason));
}

void ToMessage(const engine::Watched& watched, v1::WatchEvent& to) {
  if (watched.news == nullptr) {
    to.set_kind(v1::WATCH_EVENT_KIND_GAP);
    return;
  }
  const KeyNews& news = *watched.news;
  to.set_kind(KindOf(news.kind));
  to.set_key(news.name.key);
  to.set_owner_fingerprint(OwnerFingerprint(news.owner));
  to.set_hold_id(news.hold_id);
  to.set_fencing_token(news.token);
  if (news.kind == KeyNews::Kind::kLost) {
    to.set_loss_reason(static_cast<v1::LossReason>(news.reason));
  }
  to.set_note(news.note);
  to.set_mode(static_cast<v1::Mode>(news.mode));
  to.set_queue_length(news.queue_length);
}

void ToMessage(const absl::Status& status, v1::Error& to) {
  to.set_code(static_cast<int>(status.code()));
  to.set_reason(static_cast<v1::ErrorReason>(ReasonOf(status)));
  to.set_field(FieldOf(status));
  to.set_message(std::string(status.message()));
  if (const std::optional<absl::Duration> retry = RetryAfterOf(status)) {
    ToMessage(*retry, *to.mutable_retry_after());
  }
}

void ToMessage(const engine::Event& event, v1::SessionEvent& to) {
  std::visit(EventToMessage{to}, event.body);
}

}  // namespace holdfast::server
