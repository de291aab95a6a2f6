// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/stream.h"

#include <utility>

namespace holdfast::bench {
namespace {

constexpr int kSilenceLimitSeconds = 10;
constexpr int kSessionTtlSeconds = 600;

}  // namespace

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Loop::~Loop() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

absl::Status Loop::RunUntil(const std::function<bool()>& done) {
  while (broken_.ok() && !done()) {
    if (!Next()) return absl::UnavailableError("the daemon has fallen silent");
  }
  return broken_;
}

bool Loop::Next() {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec limit = gpr_time_from_seconds(kSilenceLimitSeconds, GPR_TIMESPAN);
  if (queue_.AsyncNext(&tag, &ok, limit) != grpc::CompletionQueue::GOT_EVENT) return false;
  auto* step = static_cast<Stream::Step*>(tag);
  (step->stream->*step->done)(ok);
  return true;
}

Stream::Stream(Loop* loop, const std::shared_ptr<grpc::Channel>& channel, Handler handler)
    : loop_(loop), handler_(std::move(handler)), stub_(v1::LockService::NewStub(channel)) {
  context_.set_wait_for_ready(true);
  v1::SessionOpen& open = *next_.mutable_open();
  open.set_protocol(1);
  open.set_client_name("bench");
  open.mutable_ttl()->set_seconds(kSessionTtlSeconds);
  ++under_way_;
  rpc_ = stub_->AsyncSession(&context_, &loop_->queue_, &started_);
}

Stream::~Stream() {
  closing_ = true;
  context_.TryCancel();
  while (under_way_ > 0 && loop_->Next()) {
  }
}

v1::SessionCommand& Stream::Add() {
  v1::SessionCommand& command = *next_.add_commands();
  command.set_request_id(++last_id_);
  return command;
}

void Stream::Flush() {
  if (writing_ || closing_ || next_.commands_size() == 0) return;
  writing_ = true;
  outgoing_.Swap(&next_);
  next_.Clear();
  ++under_way_;
  rpc_->Write(outgoing_, &written_);
}

void Stream::Read() {
  ++under_way_;
  rpc_->Read(&incoming_, &read_);
}

void Stream::Break() {
  if (!closing_) loop_->broken_ = absl::UnavailableError("the daemon has ended a session");
}

void Stream::OnStarted(bool ok) {
  --under_way_;
  if (!ok || closing_) return Break();
  writing_ = true;
  outgoing_.Swap(&next_);
  ++under_way_;
  rpc_->Write(outgoing_, &written_);
  Read();
}

void Stream::OnWritten(bool ok) {
  --under_way_;
  writing_ = false;
  if (!ok) return Break();
  Flush();
}

void Stream::OnRead(bool ok) {
  --under_way_;
  if (!ok) return Break();
  if (closing_) return;
  for (const v1::SessionEvent& event : incoming_.events()) {
    if (event.has_opened()) {
      opened_ = true;
    } else {
      handler_(event);
    }
  }
  Read();
  Flush();
}

}  // namespace holdfast::bench
