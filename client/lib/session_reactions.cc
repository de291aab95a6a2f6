// SPDX-License-Identifier: Apache-2.0
//
// What gRPC tells a session. Reactions take the lock, change what they must,
// and start the next operation after letting go of it.
#include <utility>

#include "client/lib/convert.h"
#include "client/lib/session_core.h"
#include "src/base/status.h"

namespace holdfast::client {

void SessionCore::OnReadDone(bool ok) {
  Lock lock(mutex_);
  if (!ok) {
    reading_ = false;
    LetGoIfIdle();
    return;
  }
  const BootTime now = clock_.Now();
  for (v1::SessionEvent& event : *incoming_.mutable_events()) OnEvent(event, now);
  Tell(std::move(lock));
  Send(Lock(mutex_));
  StartRead(&incoming_);
}

void SessionCore::OnWriteDone(bool /*ok*/) {
  Lock lock(mutex_);
  writing_ = false;
  if (!reading_) {
    LetGoIfIdle();
    return;
  }
  Send(std::move(lock));
}

void SessionCore::OnWritesDoneDone(bool ok) { OnWriteDone(ok); }

void SessionCore::LetGoIfIdle() {
  if (reading_ || writing_ || !holding_) return;
  holding_ = false;
  RemoveHold();
}

void SessionCore::OnDone(const grpc::Status& status) {
  Lock lock(mutex_);
  end_ = StatusOf(status, context_);
  // Where the connection broke, the daemon may be gone and the store still keeps the holds: they
  // are valid as long as they were said to be. Any other end is the daemon's word that they are
  // over.
  if (book_.has_value() && !closing_ && !IsUnreachable(end_)) book_->OnSessionOver();
  if (is_open_ && !closing_) {
    events_.push_back({.kind = SessionEvent::Kind::kEnded, .hold_id = {}, .limit = {}});
  }
  timer_.Wake();
  Tell(std::move(lock));
  lock = Lock(mutex_);
  // Last: the destructor waits for it.
  done_ = true;
  changed_.notify_all();
}

void SessionCore::OnEvent(v1::SessionEvent& event, BootTime now) {
  switch (event.event_case()) {
    case v1::SessionEvent::kOpened:
      OnOpened(*event.mutable_opened());
      break;
    case v1::SessionEvent::kReply:
      OnReply(*event.mutable_reply(), now);
      break;
    case v1::SessionEvent::kPong:
      OnPong(event.pong(), now);
      break;
    case v1::SessionEvent::kLost:
      book_->OnLost(event.lost().hold_id(), event.lost().reason());
      break;
    case v1::SessionEvent::kContended:
      events_.push_back({.kind = SessionEvent::Kind::kContended,
                         .hold_id = event.contended().hold_id(),
                         .limit = {}});
      break;
    case v1::SessionEvent::kDraining:
      events_.push_back({.kind = SessionEvent::Kind::kDraining,
                         .hold_id = {},
                         .limit = FromMessage(event.draining().limit())});
      break;
    case v1::SessionEvent::EVENT_NOT_SET:
      break;  // something newer than this client
  }
}

void SessionCore::OnOpened(v1::SessionOpened& opened) {
  if (is_open_) return;
  opened_.Swap(&opened);
  book_.emplace(SessionValidity(open_sent_, FromMessage(opened_.ttl()),
                                FromMessage(opened_.safety_margin())));
  last_ping_ = open_sent_;
  is_open_ = true;
}

void SessionCore::OnReply(v1::SessionReply& reply, BootTime now) {
  const auto it = waiting_.find(reply.request_id());
  std::vector<const v1::Grant*> grants;
  if (reply.has_acquire() && reply.acquire().has_grant()) {
    grants.push_back(&reply.acquire().grant());
  }
  for (const v1::Grant& grant : reply.acquire_all().grants()) grants.push_back(&grant);
  if (it == waiting_.end()) {
    // Whoever asked has given up: give it back.
    for (const v1::Grant* grant : grants) EnqueueRelease(*grant);
    return;
  }
  for (const v1::Grant* grant : grants) book_->OnGrant(it->second.sent, *grant, now);
  if (!grants.empty()) timer_.Wake();  // there is a new deadline, and maybe a shorter lease
  it->second.reply.emplace().Swap(&reply);
}

void SessionCore::EnqueueRelease(const v1::Grant& grant) {
  v1::SessionCommand release;
  release.mutable_release()->set_namespace_(grant.namespace_());
  release.mutable_release()->set_key(grant.key());
  release.mutable_release()->set_owner(grant.owner());
  release.mutable_release()->set_hold_id(grant.hold_id());
  Enqueue(std::move(release));
}

void SessionCore::OnPong(const v1::Pong& pong, BootTime now) {
  const auto it = pings_.find(pong.request_id());
  if (it == pings_.end()) return;
  std::optional<absl::Duration> valid_for;
  if (pong.has_valid_for()) valid_for = FromMessage(pong.valid_for());
  book_->OnPong(it->second, valid_for, now);
  pings_.erase(pings_.begin(), std::next(it));  // an older one that comes later says less
}

}  // namespace holdfast::client
