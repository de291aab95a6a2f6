// SPDX-License-Identifier: Apache-2.0
//
// The reading half of a session's stream.
#include <google/protobuf/arena.h>

#include "absl/strings/str_cat.h"
#include "server/front/convert.h"
#include "server/front/session_stream.h"
#include "src/base/limits.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

constexpr uint32_t kProtocol = 1;
constexpr int kMaxFeatures = 32;
constexpr size_t kMaxFeatureBytes = 64;

absl::Status Invalid(absl::string_view field, absl::string_view rule) {
  return Fail(Reason::kInvalidField, field, absl::StrCat(field, " ", rule));
}

absl::Status CheckOpen(const v1::SessionOpen& open) {
  if (open.protocol() != kProtocol) {
    return Invalid("protocol", absl::StrCat("must be ", kProtocol, ", not ", open.protocol()));
  }
  if (open.features_size() > kMaxFeatures) {
    return Invalid("features", absl::StrCat("must be at most ", kMaxFeatures));
  }
  for (const std::string& feature : open.features()) {
    const absl::Status status = CheckText(feature, "features", kMaxFeatureBytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

void SessionStream::OnReadDone(bool ok) {
  if (!ok) {
    // The client has ended the stream, or its connection is gone: where that cannot be told yet,
    // OnDone decides.
    if (HeardLately() && !front_.behind_proxy) PostClosed(engine::StreamEnd::kByClient);
    return EndWith(absl::OkStatus());
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (end_.has_value()) return;  // ended by our side: nothing is read any more
  }
  received_ = front_.clock->Now();
  last_heard_ns_ = received_.nanos();
  const bool opening = !open_seen_;
  const absl::Status status = OnMessage();
  if (!status.ok()) return EndWith(status);
  // The first read after `open` is begun when the session is there.
  if (!opening) StartRead(&incoming_);
}

absl::Status SessionStream::OnMessage() {
  google::protobuf::Arena arena;
  v1::SessionRequest& message = *google::protobuf::Arena::CreateMessage<v1::SessionRequest>(&arena);
  std::vector<BadCommand> bad;
  absl::Status status = DecodeSession(incoming_, message, bad);
  incoming_.Clear();
  if (!status.ok()) return status;
  if (static_cast<size_t>(message.commands_size()) + bad.size() > limits::kMaxCommandsPerMessage) {
    return Invalid("commands", absl::StrCat("must be at most ", limits::kMaxCommandsPerMessage,
                                            " in a message"));
  }
  const bool opening = !open_seen_;
  if (opening != message.has_open()) {
    return Invalid("open", opening ? "must be set in the first message of a stream"
                                   : "must be set in the first message of a stream only");
  }
  if (!opening) {
    Batch batch{channel_, nullptr, {}};
    TakeCommands(message, bad, batch);
    PostCommands(std::move(batch));
    return absl::OkStatus();
  }
  open_seen_ = true;
  early_.channel = channel_;
  TakeCommands(message, bad, early_);
  return OnOpen(message);
}

absl::Status SessionStream::OnOpen(v1::SessionRequest& message) {
  absl::Status status = CheckOpen(message.open());
  if (!status.ok()) return status;
  absl::StatusOr<engine::OpenSession> open =
      ToOpenSession(std::move(*message.mutable_open()),
                    engine::CommandHead{{channel_, 0}, kAnonymous, received_});
  if (!open.ok()) return open.status();
  open->peer = context_->peer();
  return front_.loop->Post({channel_, self_, {*std::move(open)}}) ? absl::OkStatus() : QueueFull();
}

void SessionStream::TakeCommands(v1::SessionRequest& message, const std::vector<BadCommand>& bad,
                                 Batch& batch) {
  for (const BadCommand& command : bad) {
    const absl::Status used = CheckRequestId(command.request_id);
    Refuse(command.request_id, used.ok() ? command.status : used);
  }
  batch.commands.reserve(static_cast<size_t>(message.commands_size()));
  for (v1::SessionCommand& command : *message.mutable_commands()) {
    const uint64_t request_id = command.request_id();
    absl::Status status = CheckRequestId(request_id);
    if (status.ok()) {
      absl::StatusOr<engine::Command> converted = ToCommand(command);
      if (converted.ok()) {
        batch.commands.push_back(*std::move(converted));
        continue;
      }
      status = converted.status();
    }
    Refuse(request_id, status);
  }
}

absl::Status SessionStream::CheckRequestId(uint64_t request_id) {
  if (request_id == 0) return Invalid("request_id", "must not be 0");
  switch (request_ids_.Add(request_id)) {
    case IdRanges::Added::kNew:
      return absl::OkStatus();
    case IdRanges::Added::kKnown:
      return Invalid("request_id",
                     absl::StrCat("must not be used twice in a stream: ", request_id));
    case IdRanges::Added::kFull:
      break;
  }
  return Fail(Reason::kLimitReached, "request_id",
              "this stream's request ids leave too many gaps; count up by one");
}

absl::StatusOr<engine::Command> SessionStream::ToCommand(v1::SessionCommand& command) {
  const auto count = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return in_flight_ < limits::kMaxInFlightPerSession ? ++in_flight_ : 0;
  };
  const uint64_t request_id = command.request_id();
  if (command.command_case() == v1::SessionCommand::kCancel) {
    return engine::Cancel{{channel_, command.cancel().cancelled_request_id()}};
  }
  engine::CommandHead head{{channel_, request_id}, kAnonymous, received_};
  absl::StatusOr<engine::Command> converted = absl::UnknownError("");  // costs nothing
  const auto set = [&converted](auto made) {
    converted = made.ok() ? absl::StatusOr<engine::Command>(*std::move(made)) : made.status();
  };
  switch (command.command_case()) {
    case v1::SessionCommand::kAcquire:
      set(ToAcquire(std::move(*command.mutable_acquire()), std::move(head),
                    front_.default_namespace));
      break;
    case v1::SessionCommand::kRenew:
      set(ToRenew(std::move(*command.mutable_renew()), std::move(head), front_.default_namespace));
      break;
    case v1::SessionCommand::kRelease:
      converted = ToRelease(std::move(*command.mutable_release()), std::move(head),
                            front_.default_namespace);
      break;
    case v1::SessionCommand::kFeed:
      converted =
          engine::Feed{std::move(head), std::move(*command.mutable_feed()->mutable_hold_id())};
      break;
    case v1::SessionCommand::kLostAck:
      converted = engine::LostAck{std::move(head),
                                  std::move(*command.mutable_lost_ack()->mutable_hold_id())};
      break;
    case v1::SessionCommand::kPing:
      converted = engine::Ping{std::move(head)};
      break;
    case v1::SessionCommand::kAcquireAll:
      set(ToAcquireAll(std::move(*command.mutable_acquire_all()), std::move(head),
                       front_.default_namespace));
      break;
    case v1::SessionCommand::kCancel:
    case v1::SessionCommand::COMMAND_NOT_SET:
      converted = Invalid("command", "must be set");
      break;
  }
  if (converted.ok() && count() == 0) {
    return Fail(
        Reason::kLimitReached, "in_flight",
        absl::StrCat("a stream may have ", limits::kMaxInFlightPerSession, " commands in flight"));
  }
  return converted;
}

void SessionStream::PostCommands(Batch batch) {
  if (batch.commands.empty()) return;
  std::vector<uint64_t> ids;
  for (engine::Command& command : batch.commands) {
    // Names the session, so that a command that arrives after its end cannot become a bare lease.
    auto* acquire = std::get_if<engine::Acquire>(&command);
    if (acquire != nullptr && acquire->session_id.empty()) acquire->session_id = session_id_;
    auto* all = std::get_if<engine::AcquireAll>(&command);
    if (all != nullptr && all->session_id.empty()) all->session_id = session_id_;
    std::visit(
        [&ids](const auto& c) {
          if constexpr (requires { c.head; }) ids.push_back(c.head.reply_to.request_id);
        },
        command);
  }
  if (front_.loop->Post(std::move(batch))) return;
  for (const uint64_t id : ids) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --in_flight_;
    }
    Refuse(id, QueueFull());
  }
}

}  // namespace holdfast::server
