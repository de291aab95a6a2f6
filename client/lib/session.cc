// SPDX-License-Identifier: Apache-2.0
#include "client/lib/session.h"

#include <utility>

#include "client/lib/convert.h"
#include "client/lib/session_core.h"
#include "src/base/status.h"

namespace holdfast::client {
namespace {

// The reply, or the error that it is.
absl::StatusOr<v1::SessionReply> Checked(absl::StatusOr<v1::SessionReply> reply) {
  if (reply.ok() && reply->has_error()) return StatusOf(reply->error());
  return reply;
}

}  // namespace

Session::Session(std::unique_ptr<SessionCore> core) : core_(std::move(core)) {}
Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Open(std::shared_ptr<grpc::Channel> channel,
                                                       SessionOptions options) {
  auto core = std::make_unique<SessionCore>(std::move(channel), std::move(options));
  if (absl::Status status = core->Open(); !status.ok()) return status;
  return std::unique_ptr<Session>(new Session(std::move(core)));
}

absl::StatusOr<v1::AcquireResponse> Session::Acquire(v1::AcquireRequest request) {
  const absl::Duration span = FromMessage(request.wait()) + core_->options().patience;
  v1::SessionCommand command;
  *command.mutable_acquire() = std::move(request);
  auto reply = Checked(core_->Call(std::move(command), span));
  if (!reply.ok()) return reply.status();
  return std::move(*reply->mutable_acquire());
}

absl::StatusOr<v1::AcquireAllResponse> Session::AcquireAll(v1::AcquireAllRequest request) {
  const absl::Duration span = FromMessage(request.wait()) + core_->options().patience;
  v1::SessionCommand command;
  *command.mutable_acquire_all() = std::move(request);
  auto reply = Checked(core_->Call(std::move(command), span));
  if (!reply.ok()) return reply.status();
  return std::move(*reply->mutable_acquire_all());
}

absl::StatusOr<v1::ReleaseResponse> Session::Release(const std::string& hold_id) {
  const std::optional<HoldBook::Names> names = core_->NamesOf(hold_id);
  if (!names.has_value()) {
    return Fail(Reason::kNotOwner, "hold_id", "this session has no such hold");
  }
  v1::SessionCommand command;
  command.mutable_release()->set_namespace_(names->ns);
  command.mutable_release()->set_key(names->key);
  command.mutable_release()->set_owner(names->owner);
  command.mutable_release()->set_hold_id(hold_id);
  auto reply = Checked(core_->Call(std::move(command), core_->options().patience));
  if (!reply.ok()) return reply.status();
  return std::move(*reply->mutable_release());
}

absl::Status Session::Feed(const std::string& hold_id) {
  v1::SessionCommand command;
  command.mutable_feed()->set_hold_id(hold_id);
  return Checked(core_->Call(std::move(command), core_->options().patience)).status();
}

absl::Status Session::LostAck(const std::string& hold_id) {
  v1::SessionCommand command;
  command.mutable_lost_ack()->set_hold_id(hold_id);
  core_->Forget(hold_id);
  return Checked(core_->Call(std::move(command), core_->options().patience)).status();
}

bool Session::IsHeld(const std::string& hold_id) { return core_->IsHeld(hold_id); }
BootTime Session::ValidUntil(const std::string& hold_id) { return core_->ValidUntil(hold_id); }
std::optional<Loss> Session::LossOf(const std::string& hold_id) { return core_->LossOf(hold_id); }
const v1::SessionOpened& Session::opened() const { return core_->opened(); }
absl::Status Session::end_status() const { return core_->end_status(); }

}  // namespace holdfast::client
