// SPDX-License-Identifier: Apache-2.0
#include "server/front/list_call.h"

#include "server/front/convert.h"
#include "server/front/decode.h"
#include "src/base/status.h"

namespace holdfast::server {

grpc::ServerWriteReactor<grpc::ByteBuffer>* ListCall::Start(const Front& front,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer& request) {
  std::shared_ptr<ListCall> call(new ListCall(front, context));
  call->self_ = call;
  call->Begin(request);
  return call.get();  // gRPC cannot be done with it before it has it
}

ListCall::ListCall(const Front& front, grpc::CallbackServerContext* context)
    : front_(front), context_(context), channel_(front.loop->NewChannel()) {}

void ListCall::Begin(const grpc::ByteBuffer& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Status status = Decode(request, request_);
  if (!status.ok()) return End(status);
  if (request_.namespace_().empty()) request_.set_namespace_(front_.default_namespace);
  Ask();
}

void ListCall::Ask() {
  state_ = State::kAsking;
  engine::List list{HeadFor(front_, channel_, 1), request_.namespace_(), request_.prefix(),
                    cursor_};
  if (!front_.loop->Post({channel_, self_, {std::move(list)}})) End(QueueFull());
}

bool ListCall::Deliver(absl::Span<engine::Event> events) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (engine::Event& event : events) {
    if (auto* end = std::get_if<engine::EndStream>(&event.body)) {
      end_ = end->status;
      if (state_ == State::kAsking) End(*end_);
    } else if (auto* reply = std::get_if<engine::Reply>(&event.body);
               reply != nullptr && state_ == State::kAsking) {
      if (auto* page = std::get_if<engine::ListAnswer>(&reply->result)) {
        page_ = std::move(*page);
        written_ = 0;
        cursor_ = page_.next_cursor;
        WriteNext();
      } else if (auto* failed = std::get_if<absl::Status>(&reply->result)) {
        End(*failed);
      }
    }
  }
  return state_ != State::kFinished;
}

void ListCall::WriteNext() {
  if (end_.has_value()) return End(*end_);
  if (context_->IsCancelled()) return End(absl::CancelledError());
  if (written_ == page_.keys.size()) return cursor_.empty() ? End(absl::OkStatus()) : Ask();
  v1::ListResponse response;
  size_t bytes = 0;
  while (written_ < page_.keys.size() && bytes < kMaxAnswerBytes) {
    ToMessage(page_.keys[written_++], *response.add_keys());
    bytes += response.keys(response.keys_size() - 1).ByteSizeLong();
  }
  outgoing_ = Encode(response);
  state_ = State::kWriting;
  StartWrite(&outgoing_);
}

void ListCall::OnWriteDone(bool ok) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ok) return WriteNext();
  End(absl::CancelledError());
}

void ListCall::End(const absl::Status& status) {
  if (state_ == State::kFinished) return;
  state_ = State::kFinished;
  Finish(ToGrpcStatus(status, *context_));
}

void ListCall::OnDone() {
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::ChannelClosed{channel_}}});
  self_.reset();  // may be the end of this
}

}  // namespace holdfast::server
