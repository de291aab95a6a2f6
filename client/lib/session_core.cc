// SPDX-License-Identifier: Apache-2.0
#include "client/lib/session_core.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/convert.h"
#include "src/base/durations.h"
#include "src/base/status.h"

namespace holdfast::client {
namespace {

constexpr uint32_t kProtocol = 1;
// Patience is for a daemon that does not answer. A process that stood still itself (Ctrl-Z, a
// machine under a hypervisor) did not wait: its answer may lie unread. So waits go in steps, and
// none counts for more than twice what it should have taken.
constexpr absl::Duration kPatienceStep = absl::Milliseconds(250);
// How long the end of a session waits for the daemon's consent before it just hangs up.
constexpr std::chrono::seconds kCloseLimit(1);

std::chrono::nanoseconds Chrono(absl::Duration duration) {
  return std::chrono::nanoseconds(absl::ToInt64Nanoseconds(duration));
}

absl::Status NoAnswer(absl::string_view what, absl::Duration after) {
  return absl::UnavailableError(
      absl::StrCat("the daemon did not answer ", what, " within ", DurationText(after)));
}

}  // namespace

SessionCore::SessionCore(std::shared_ptr<grpc::Channel> channel, SessionOptions options)
    : options_(std::move(options)), stub_(v1::LockService::NewStub(std::move(channel))) {}

absl::Status SessionCore::Open() {
  outgoing_.mutable_open()->set_protocol(kProtocol);
  outgoing_.mutable_open()->set_client_name(options_.client_name);
  *outgoing_.mutable_open()->mutable_ttl() = ToMessage(options_.ttl);
  open_sent_ = clock_.Now();
  writing_ = true;
  stub_->async()->Session(&context_, this);
  AddHold();
  StartWrite(&outgoing_);
  StartRead(&incoming_);
  StartCall();

  Lock lock(mutex_);
  WaitPatiently(lock, options_.open_timeout, [&] { return is_open_ || done_; });
  if (!is_open_) {
    if (!done_) return NoAnswer("the session's opening", options_.open_timeout);
    return end_.ok() ? absl::UnavailableError("the daemon ended the session at once") : end_;
  }
  watcher_ = std::thread([this] { WatchTheClock(); });
  return absl::OkStatus();
}

SessionCore::~SessionCore() {
  Lock lock(mutex_);
  closing_ = true;
  timer_.Wake();
  if (is_open_) {
    Send(std::move(lock));
    if (watcher_.joinable()) watcher_.join();
    lock = Lock(mutex_);
    changed_.wait_for(lock, kCloseLimit, [&] { return done_; });
  }
  if (!done_) context_.TryCancel();
  changed_.wait(lock, [&] { return done_; });
}

absl::StatusOr<v1::SessionReply> SessionCore::Call(v1::SessionCommand command,
                                                   absl::Duration span) {
  Lock lock(mutex_);
  if (!reading_ || closing_) {
    return end_.ok() ? absl::UnavailableError("the session is over") : end_;
  }
  const bool is_acquire = command.has_acquire() || command.has_acquire_all();
  if (command.has_release()) book_->OnRelease(command.release().hold_id());
  const uint64_t id = Enqueue(std::move(command));
  waiting_[id] = {.sent = clock_.Now(), .is_acquire = is_acquire, .reply = std::nullopt};
  Send(std::move(lock));

  lock = Lock(mutex_);
  WaitPatiently(lock, span, [&] {
    return waiting_[id].reply.has_value() || done_ || (is_acquire && book_->session_over());
  });
  const std::optional<v1::SessionReply> reply = std::move(waiting_[id].reply);
  waiting_.erase(id);
  if (reply.has_value()) return *reply;
  if (done_) return end_.ok() ? absl::UnavailableError("the session is over") : end_;
  if (is_acquire) {
    v1::SessionCommand cancel;
    cancel.mutable_cancel()->set_cancelled_request_id(id);
    Enqueue(std::move(cancel));
    Send(std::move(lock));
  }
  return NoAnswer("a command", span);
}

void SessionCore::WaitPatiently(Lock& lock, absl::Duration span,
                                const std::function<bool()>& is_over) {
  while (!is_over() && span > absl::ZeroDuration()) {
    const absl::Duration step = std::min(span, kPatienceStep);
    const BootTime start = clock_.Now();
    changed_.wait_for(lock, Chrono(step));
    span -= std::min(clock_.Now() - start, 2 * step);
  }
}

uint64_t SessionCore::Enqueue(v1::SessionCommand command) {
  command.set_request_id(++last_request_id_);
  *next_.add_commands() = std::move(command);
  return last_request_id_;
}

void SessionCore::Send(Lock lock) {
  if (writing_ || !reading_ || half_closed_ || !is_open_) return;
  if (next_.commands().empty()) {
    if (!closing_) return;
    writing_ = half_closed_ = true;
    lock.unlock();
    StartWritesDone();
    return;
  }
  outgoing_.Clear();
  const int room = static_cast<int>(std::max<uint32_t>(opened_.max_commands_per_message(), 1));
  if (next_.commands_size() <= room) {
    outgoing_.Swap(&next_);
  } else {
    for (int i = 0; i < room; ++i) outgoing_.add_commands()->Swap(next_.mutable_commands(i));
    next_.mutable_commands()->DeleteSubrange(0, room);
  }
  writing_ = true;
  lock.unlock();
  StartWrite(&outgoing_);
}

void SessionCore::Tell(Lock lock) {
  if (book_.has_value()) {
    for (std::string& id : book_->TakeLost()) {
      events_.push_back({.kind = SessionEvent::Kind::kLost, .hold_id = std::move(id), .limit = {}});
    }
  }
  const std::vector<SessionEvent> events = std::exchange(events_, {});
  changed_.notify_all();
  lock.unlock();
  if (!options_.on_event) return;
  for (const SessionEvent& event : events) options_.on_event(event);
}

bool SessionCore::IsHeld(const std::string& hold_id) {
  const Lock lock(mutex_);
  return book_->IsHeld(hold_id, clock_.Now());
}

BootTime SessionCore::ValidUntil(const std::string& hold_id) {
  const Lock lock(mutex_);
  return book_->ValidUntil(hold_id, clock_.Now());
}

std::optional<Loss> SessionCore::LossOf(const std::string& hold_id) {
  const Lock lock(mutex_);
  return book_->LossOf(hold_id, clock_.Now());
}

std::optional<HoldBook::Names> SessionCore::NamesOf(const std::string& hold_id) {
  const Lock lock(mutex_);
  return book_->NamesOf(hold_id);
}

void SessionCore::Forget(const std::string& hold_id) {
  const Lock lock(mutex_);
  book_->Forget(hold_id);
}

absl::Status SessionCore::end_status() {
  const Lock lock(mutex_);
  return end_;
}

BootTime SessionCore::NextPing() const {
  if (!reading_) return BootTime::Infinite();
  const absl::Duration interval = PingInterval(FromMessage(opened_.ttl()), book_->ShortestLease());
  return last_ping_ + interval;
}

void SessionCore::WatchTheClock() {
  for (;;) {
    Lock lock(mutex_);
    if (closing_) return;
    const BootTime now = clock_.Now();
    book_->Advance(now);
    if (NextPing() <= now && !book_->session_over()) {
      v1::SessionCommand ping;
      ping.mutable_ping();
      pings_[Enqueue(std::move(ping))] = now;
      last_ping_ = now;
    }
    BootTime next = book_->NextDeadline();
    if (!book_->session_over()) next = std::min(next, NextPing());
    Tell(std::move(lock));
    Send(Lock(mutex_));
    timer_.WaitUntil(next);
  }
}

}  // namespace holdfast::client
