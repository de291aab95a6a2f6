// SPDX-License-Identifier: Apache-2.0
#include "server/front/unary_call.h"

#include "src/base/status.h"

namespace holdfast::server {
namespace {

std::vector<engine::Grant> GrantsIn(const engine::Reply* reply) {
  if (reply == nullptr) return {};
  if (const auto* grant = std::get_if<engine::Grant>(&reply->result)) return {*grant};
  if (const auto* all = std::get_if<engine::AllGranted>(&reply->result)) return all->grants;
  return {};
}

}  // namespace

UnaryCall::UnaryCall(const Front& front, grpc::CallbackServerContext* context,
                     grpc::ByteBuffer* response, Encoder encode)
    : front_(front),
      context_(context),
      response_(response),
      encode_(std::move(encode)),
      channel_(front.loop->NewChannel()) {}

void UnaryCall::Send(absl::StatusOr<engine::Command> command) {
  if (!command.ok()) {
    end_ = End::kAnswered;
    return Answer(command.status());
  }
  if (!front_.loop->Post({channel_, self_, {*std::move(command)}})) {
    end_ = End::kAnswered;
    Answer(QueueFull());
  }
}

void UnaryCall::Answer(const absl::Status& status) { Finish(ToGrpcStatus(status, *context_)); }

bool UnaryCall::Deliver(absl::Span<engine::Event> events) {
  auto* end = std::get_if<engine::EndStream>(&events[0].body);
  auto* reply = std::get_if<engine::Reply>(&events[0].body);
  if (end == nullptr && reply == nullptr) return true;
  std::vector<engine::Grant> grants = GrantsIn(reply);
  End expected = End::kNotYet;
  if (!end_.compare_exchange_strong(expected, End::kAnswered)) {
    // The call is over: of gRPC's things nothing may be touched any more.
    Undo(grants);
    return false;
  }
  granted_ = std::move(grants);
  if (end != nullptr) {
    Answer(end->status);
  } else if (const auto* failed = std::get_if<absl::Status>(&reply->result)) {
    Answer(*failed);
  } else {
    *response_ = encode_(reply->result);
    Answer(absl::OkStatus());
  }
  return false;
}

void UnaryCall::OnCancel() {
  End expected = End::kNotYet;
  if (!end_.compare_exchange_strong(expected, End::kCancelled)) return;
  front_.loop->PostUnrefusable({channel_, nullptr, {engine::ChannelClosed{channel_}}});
  Finish(grpc::Status::CANCELLED);
}

void UnaryCall::OnDone() {
  const bool unheard = end_ == End::kAnswered && context_->IsCancelled();
  if (unheard) Undo(granted_);
  self_.reset();  // may be the end of this
}

void UnaryCall::Undo(const std::vector<engine::Grant>& grants) {
  if (retryable_ || grants.empty()) return;
  // Nobody waits for the answers: the channel has no sink.
  const uint64_t channel = front_.loop->NewChannel();
  Batch batch{channel, nullptr, {}};
  for (const engine::Grant& grant : grants) {
    batch.commands.push_back(engine::Release{HeadFor(front_, channel, batch.commands.size() + 1),
                                             grant.name, grant.owner, grant.hold_id, ""});
  }
  front_.loop->PostUnrefusable(std::move(batch));
}

}  // namespace holdfast::server
