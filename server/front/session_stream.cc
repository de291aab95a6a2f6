// SPDX-License-Identifier: Apache-2.0
#include "server/front/session_stream.h"

#include <google/protobuf/arena.h>

#include "absl/strings/str_cat.h"
#include "server/front/convert.h"
#include "server/log.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// A message is noticed a little after it came in, never before.
constexpr absl::Duration kNoticeDelay = absl::Seconds(1);

// One line for all that a session loses at once.
void LogLosses(absl::Span<const engine::Event> events, const std::string& session) {
  const engine::Lost* first = nullptr;
  size_t count = 0;
  for (const engine::Event& event : events) {
    const auto* lost = std::get_if<engine::Lost>(&event.body);
    if (lost == nullptr) continue;
    ++count;
    if (first == nullptr) first = lost;
  }
  if (first == nullptr) return;
  LogWarn("a session lost holds",
          {{"session", session},
           {"holds", absl::StrCat(count)},
           {"key", first->name.ToString()},
           {"owner", OwnerFingerprint(first->owner)},
           {"reason", v1::LossReason_Name(static_cast<int>(first->reason))}});
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* SessionStream::Start(
    const Front& front, grpc::CallbackServerContext* context) {
  std::shared_ptr<SessionStream> stream(new SessionStream(front, context));
  stream->self_ = stream;
  // A write before the initial metadata has gone out may hang the stream.
  stream->StartSendInitialMetadata();
  stream->StartRead(&stream->incoming_);
  return stream.get();  // gRPC cannot be done with it before it has it
}

SessionStream::SessionStream(const Front& front, grpc::CallbackServerContext* context)
    : front_(front),
      context_(context),
      channel_(front.loop->NewChannel()),
      last_heard_ns_(front.clock->Now().nanos()),
      request_ids_(limits::kMaxRequestIdRanges) {}

bool SessionStream::Deliver(absl::Span<engine::Event> events) {
  LogLosses(events, session_id_);
  std::unique_lock<std::mutex> lock(mutex_);
  bool opened = false;
  for (engine::Event& event : events) {
    if (const auto* end = std::get_if<engine::EndStream>(&event.body)) {
      if (!end_.has_value()) end_ = end->status;
      if (ReasonOf(end->status) == Reason::kSlowReader) {
        // It would not read that either.
        unsent_ -= pending_.size();
        pending_.clear();
      }
      break;
    }
    const bool answers = std::holds_alternative<engine::Reply>(event.body) ||
                         std::holds_alternative<engine::Pong>(event.body);
    if (answers && in_flight_ > 0) --in_flight_;
    if (finished_) continue;
    ++unsent_;
    if (const auto* open = std::get_if<engine::SessionOpened>(&event.body)) {
      session_id_ = open->session_id;
      opened = true;
      pending_.insert(pending_.begin(),
                      std::move(event));  // before refusals of what came with `open`
    } else {
      pending_.push_back(std::move(event));
    }
  }
  GiveUpOnSlowReader();
  if (opened) {
    lock.unlock();
    PostCommands(std::exchange(early_, Batch()));
    lock.lock();
    // With the lock, so that the stream is not finished, and gone, meanwhile.
    if (!finished_) StartRead(&incoming_);
  }
  const bool more = !end_.has_value();
  Proceed(std::move(lock));
  return more;
}

void SessionStream::GiveUpOnSlowReader() {
  if (unsent_ <= limits::kMaxPendingEventsPerSession || slow_) return;
  slow_ = true;
  LogWarn("a client does not read its events: its session is ended", {{"session", session_id_}});
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::SlowReader{channel_}}});
}

void SessionStream::Refuse(uint64_t request_id, const absl::Status& status) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (finished_) return;
  // In two steps: GCC 12 takes the unused space of the variant for an uninitialised read otherwise.
  engine::Event& event = pending_.emplace_back();
  event.channel = channel_;
  event.body = engine::Reply{request_id, status};
  ++unsent_;
  GiveUpOnSlowReader();
  // Answers to what came with `open` follow `opened`.
  if (!session_id_.empty()) Proceed(std::move(lock));
}

void SessionStream::Proceed(std::unique_lock<std::mutex> lock) {
  if (writing_ || finished_) return;
  if (sending_.empty()) sending_ = std::exchange(pending_, {});
  if (!sending_.empty()) {
    writing_ = true;
    lock.unlock();
    outgoing_ = NextMessage();
    StartWrite(&outgoing_);
  } else if (end_.has_value()) {
    finished_ = true;
    lock.unlock();
    Finish(ToGrpcStatus(*end_, *context_));
  }
}

grpc::ByteBuffer SessionStream::NextMessage() {
  google::protobuf::Arena arena;
  v1::SessionResponse& message =
      *google::protobuf::Arena::CreateMessage<v1::SessionResponse>(&arena);
  size_t bytes = 0;
  while (sent_ < sending_.size() && bytes < kMaxAnswerBytes) {
    const engine::Event& event = sending_[sent_++];
    v1::SessionEvent& to = *message.add_events();
    if (const auto* opened = std::get_if<engine::SessionOpened>(&event.body)) {
      OpenedToMessage(front_, *opened, *to.mutable_opened());
    } else {
      ToMessage(event, to);
    }
    bytes += to.ByteSizeLong();
  }
  return Encode(message);
}

void SessionStream::OnWriteDone(bool ok) {
  std::unique_lock<std::mutex> lock(mutex_);
  writing_ = false;
  outgoing_.Clear();
  if (!ok) {
    // The stream is broken: nothing can be written any more.
    if (!end_.has_value()) end_ = absl::CancelledError();
    sent_ = sending_.size();
    pending_.clear();
  }
  if (sent_ == sending_.size()) {
    sending_ = {};  // an idle stream keeps no memory
    sent_ = 0;
  }
  unsent_ = pending_.size() + (sending_.size() - sent_);
  Proceed(std::move(lock));
}

void SessionStream::EndWith(const absl::Status& status) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!end_.has_value()) end_ = status;
  Proceed(std::move(lock));
}

void SessionStream::OnCancel() {
  PostClosed(HowItBroke());
  EndWith(absl::CancelledError());
}

void SessionStream::OnDone() {
  if (context_->IsCancelled()) {
    PostClosed(HowItBroke());
  } else if (end_->ok()) {
    PostClosed(engine::StreamEnd::kByClient);
  } else if (ReasonOf(*end_) != Reason::kDraining) {
    // Our side ended it: that the status was sent does not mean that the client has read it. (Of a
    // drained daemon nothing more is given back: what its holders did not acknowledge has its
    // lease.)
    PostClosed(engine::StreamEnd::kFellSilent);
  }
  self_.reset();  // may be the end of this
}

bool SessionStream::HeardLately() const {
  const BootTime heard = BootTime::FromNanos(last_heard_ns_);
  return front_.clock->Now() - heard < kKeepaliveTimeout - kNoticeDelay;
}

engine::StreamEnd SessionStream::HowItBroke() const {
  return HeardLately() && !front_.behind_proxy ? engine::StreamEnd::kByClient
                                               : engine::StreamEnd::kFellSilent;
}

void SessionStream::PostClosed(engine::StreamEnd how) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::ChannelClosed{channel_, how}}});
}

void OpenedToMessage(const Front& front, const engine::SessionOpened& opened,
                     v1::SessionOpened& to) {
  to.set_session_id(opened.session_id);
  to.set_daemon_id(front.daemon_id);
  ToMessage(opened.ttl, *to.mutable_ttl());
  ToMessage(opened.lease, *to.mutable_lease());
  ToMessage(SafetyMargin(opened.lease), *to.mutable_safety_margin());
  ToMessage(limits::kMinLease, *to.mutable_min_lease());
  ToMessage(front.max_lease, *to.mutable_max_lease());
  ToMessage(limits::kMaxWait, *to.mutable_max_wait());
  if (front.default_max_hold != absl::InfiniteDuration()) {
    ToMessage(front.default_max_hold, *to.mutable_default_max_hold());
  }
  to.set_max_commands_per_message(limits::kMaxCommandsPerMessage);
  if (opened.ttl == absl::ZeroDuration()) {
    to.add_warnings(
        "ttl is 0: only the stream stands for this session; a client that hangs or is cut off "
        "holds "
        "its locks until its connection breaks");
  }
}

}  // namespace holdfast::server
