// SPDX-License-Identifier: Apache-2.0
#include "server/front/paged_call.h"

#include "src/base/status.h"

namespace holdfast::server {

grpc::ServerWriteReactor<grpc::ByteBuffer>* PagedCall::Start(
    const Front& front, grpc::CallbackServerContext* context,
    absl::StatusOr<std::unique_ptr<Listing>> listing) {
  std::shared_ptr<PagedCall> call(new PagedCall(front, context));
  call->self_ = call;
  call->Begin(std::move(listing));
  return call.get();  // gRPC cannot be done with it before it has it
}

PagedCall::PagedCall(const Front& front, grpc::CallbackServerContext* context)
    : front_(front), context_(context), channel_(front.loop->NewChannel()) {}

void PagedCall::Begin(absl::StatusOr<std::unique_ptr<Listing>> listing) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!listing.ok()) return End(listing.status());
  listing_ = *std::move(listing);
  Ask();
}

void PagedCall::Ask() {
  state_ = State::kAsking;
  if (!front_.loop->Post({channel_, self_, {listing_->Ask(HeadFor(front_, channel_, 1))}})) {
    End(QueueFull());
  }
}

bool PagedCall::Deliver(absl::Span<engine::Event> events) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (engine::Event& event : events) {
    if (auto* end = std::get_if<engine::EndStream>(&event.body)) {
      end_ = end->status;
      if (state_ == State::kAsking) End(*end_);
    } else if (auto* reply = std::get_if<engine::Reply>(&event.body);
               reply != nullptr && state_ == State::kAsking) {
      if (listing_->Take(reply->result)) {
        WriteNext();
      } else if (auto* failed = std::get_if<absl::Status>(&reply->result)) {
        End(*failed);
      }
    }
  }
  return state_ != State::kFinished;
}

void PagedCall::WriteNext() {
  if (end_.has_value()) return End(*end_);
  if (context_->IsCancelled()) return End(absl::CancelledError());
  std::optional<grpc::ByteBuffer> message = listing_->NextMessage();
  if (!message.has_value()) return listing_->complete() ? End(absl::OkStatus()) : Ask();
  outgoing_ = *std::move(message);
  state_ = State::kWriting;
  StartWrite(&outgoing_);
}

void PagedCall::OnWriteDone(bool ok) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ok) return WriteNext();
  End(absl::CancelledError());
}

void PagedCall::End(const absl::Status& status) {
  if (state_ == State::kFinished) return;
  state_ = State::kFinished;
  Finish(ToGrpcStatus(status, *context_));
}

void PagedCall::OnDone() {
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::ChannelClosed{channel_}}});
  self_.reset();  // may be the end of this
}

}  // namespace holdfast::server
