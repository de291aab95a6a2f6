// SPDX-License-Identifier: Apache-2.0
#include "server/front/watch_call.h"

#include "holdfast/v1/lock.pb.h"
#include "server/front/convert.h"
#include "server/front/decode.h"
#include "src/base/limits.h"

namespace holdfast::server {

grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchCall::Start(const Front& front,
                                                             grpc::CallbackServerContext* context,
                                                             const grpc::ByteBuffer& request) {
  std::shared_ptr<WatchCall> call(new WatchCall(front, context));
  call->self_ = call;
  call->Begin(request);
  return call.get();  // gRPC cannot be done with it before it has it
}

WatchCall::WatchCall(const Front& front, grpc::CallbackServerContext* context)
    : front_(front), context_(context), channel_(front.loop->NewChannel()) {}

void WatchCall::Begin(const grpc::ByteBuffer& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  v1::WatchRequest message;
  if (absl::Status status = Decode(request, message); !status.ok()) {
    end_ = std::move(status);
    return Proceed();
  }
  engine::Watch watch;
  watch.head = HeadFor(front_, channel_, 1);
  watch.ns = message.namespace_().empty() ? front_.default_namespace : message.namespace_();
  watch.prefix = message.prefix();
  if (!front_.loop->Post({channel_, self_, {std::move(watch)}})) end_ = QueueFull();
  Proceed();
}

bool WatchCall::Deliver(absl::Span<engine::Event> events) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (engine::Event& event : events) Take(event);
  Proceed();
  return !end_.has_value();
}

void WatchCall::Take(engine::Event& event) {
  if (end_.has_value()) return;
  if (auto* watched = std::get_if<engine::Watched>(&event.body)) {
    if (pending_.size() >= limits::kMaxPendingWatchEvents) {
      pending_.clear();
      pending_.emplace_back();
    }
    pending_.push_back(std::move(*watched));
  } else if (auto* end = std::get_if<engine::EndStream>(&event.body)) {
    end_ = end->status;
  } else if (auto* reply = std::get_if<engine::Reply>(&event.body)) {
    begins_ = std::holds_alternative<engine::WatchBegan>(reply->result);
    if (auto* failed = std::get_if<absl::Status>(&reply->result)) end_ = *failed;
  }
}

void WatchCall::Proceed() {
  if (writing_ || finished_) return;
  if (end_.has_value()) {
    finished_ = true;
    Finish(ToGrpcStatus(*end_, *context_));
  } else if (begins_ || !pending_.empty()) {
    begins_ = false;
    writing_ = true;
    outgoing_ = NextMessage();
    StartWrite(&outgoing_);
  }
}

grpc::ByteBuffer WatchCall::NextMessage() {
  v1::WatchResponse message;
  for (size_t bytes = 0; !pending_.empty() && bytes < kMaxAnswerBytes; pending_.pop_front()) {
    v1::WatchEvent& to = *message.add_events();
    ToMessage(pending_.front(), to);
    bytes += to.ByteSizeLong();
  }
  return Encode(message);
}

void WatchCall::OnWriteDone(bool ok) {
  const std::lock_guard<std::mutex> lock(mutex_);
  writing_ = false;
  if (!ok && !end_.has_value()) end_ = absl::CancelledError();
  Proceed();
}

void WatchCall::OnCancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!end_.has_value()) end_ = absl::CancelledError();
  Proceed();
}

void WatchCall::OnDone() {
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::ChannelClosed{channel_}}});
  self_.reset();  // may be the end of this
}

}  // namespace holdfast::server
