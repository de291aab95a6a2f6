// SPDX-License-Identifier: Apache-2.0
#include "client/lib/client.h"

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <utility>
#include <vector>

#include "client/lib/convert.h"

namespace holdfast::client {
namespace {

constexpr absl::Duration kListLimit = absl::Minutes(1);
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";

gpr_timespec Span(absl::Duration span) {
  return gpr_time_from_nanos(absl::ToInt64Nanoseconds(span), GPR_TIMESPAN);
}

template <typename Response, typename Call>
absl::StatusOr<Response> Unary(absl::Duration span, Call call) {
  grpc::ClientContext context;
  context.set_deadline(Span(span));
  Response response;
  const grpc::Status status = call(context, response);
  if (!status.ok()) return StatusOf(status, context);
  return response;
}

// HealthCheckRequest{service} and the status of HealthCheckResponse, as bytes: both have one field,
// of number 1, and gRPC's C++ library does not hand out the messages.
grpc::ByteBuffer HealthQuestion(const std::string& service) {
  const std::string bytes = std::string{'\x0a', static_cast<char>(service.size())} + service;
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

bool SaysServing(const grpc::ByteBuffer& answer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!answer.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes == std::string("\x08\x01", 2);
}

}  // namespace

Client::Client(std::shared_ptr<grpc::Channel> channel, absl::Duration patience)
    : channel_(std::move(channel)),
      stub_(v1::LockService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)),
      patience_(patience) {}

absl::StatusOr<v1::AcquireResponse> Client::Acquire(const v1::AcquireRequest& request) {
  return Unary<v1::AcquireResponse>(
      FromMessage(request.wait()) + patience_,
      [&](auto& context, auto& answer) { return stub_->Acquire(&context, request, &answer); });
}

absl::StatusOr<v1::AcquireAllResponse> Client::AcquireAll(const v1::AcquireAllRequest& request) {
  return Unary<v1::AcquireAllResponse>(
      FromMessage(request.wait()) + patience_,
      [&](auto& context, auto& answer) { return stub_->AcquireAll(&context, request, &answer); });
}

absl::StatusOr<v1::RenewResponse> Client::Renew(const v1::RenewRequest& request) {
  return Unary<v1::RenewResponse>(patience_, [&](auto& context, auto& answer) {
    return stub_->Renew(&context, request, &answer);
  });
}

absl::StatusOr<v1::ReleaseResponse> Client::Release(const v1::ReleaseRequest& request) {
  return Unary<v1::ReleaseResponse>(patience_, [&](auto& context, auto& answer) {
    return stub_->Release(&context, request, &answer);
  });
}

absl::StatusOr<v1::InspectResponse> Client::Inspect(const v1::InspectRequest& request) {
  return Unary<v1::InspectResponse>(patience_, [&](auto& context, auto& answer) {
    return stub_->Inspect(&context, request, &answer);
  });
}

absl::StatusOr<v1::CheckTokenResponse> Client::CheckToken(const v1::CheckTokenRequest& request) {
  return Unary<v1::CheckTokenResponse>(patience_, [&](auto& context, auto& answer) {
    return stub_->CheckToken(&context, request, &answer);
  });
}

absl::StatusOr<v1::ForceReleaseResponse> Client::ForceRelease(
    const v1::ForceReleaseRequest& request) {
  return Unary<v1::ForceReleaseResponse>(patience_, [&](auto& context, auto& answer) {
    return admin_->ForceRelease(&context, request, &answer);
  });
}

absl::StatusOr<v1::CloseSessionResponse> Client::CloseSession(
    const v1::CloseSessionRequest& request) {
  return Unary<v1::CloseSessionResponse>(patience_, [&](auto& context, auto& answer) {
    return admin_->CloseSession(&context, request, &answer);
  });
}

absl::Status Client::ListSessions(const std::function<void(const v1::SessionInfo&)>& on_session) {
  grpc::ClientContext context;
  context.set_deadline(Span(kListLimit));
  const auto reader = admin_->ListSessions(&context, v1::ListSessionsRequest());
  v1::ListSessionsResponse page;
  while (reader->Read(&page)) {
    for (const v1::SessionInfo& session : page.sessions()) on_session(session);
  }
  return StatusOf(reader->Finish(), context);
}

absl::Status Client::List(const v1::ListRequest& request,
                          const std::function<void(const v1::KeyState&)>& on_key) {
  grpc::ClientContext context;
  context.set_deadline(Span(kListLimit));
  const auto reader = stub_->List(&context, request);
  v1::ListResponse page;
  while (reader->Read(&page)) {
    for (const v1::KeyState& key : page.keys()) on_key(key);
  }
  return StatusOf(reader->Finish(), context);
}

absl::Status Client::Watch(const v1::WatchRequest& request, const std::function<void()>& on_begin,
                           const std::function<bool(const v1::WatchEvent&)>& on_event) {
  grpc::ClientContext context;
  const auto reader = stub_->Watch(&context, request);
  v1::WatchResponse response;
  bool began = false;
  bool wanted = true;
  while (wanted && reader->Read(&response)) {
    if (!std::exchange(began, true)) on_begin();
    for (const v1::WatchEvent& event : response.events()) {
      wanted = wanted && on_event(event);
    }
  }
  if (!wanted) {
    context.TryCancel();
    reader->Finish();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? absl::UnavailableError("the daemon ended the watch")
                     : StatusOf(status, context);
}

absl::StatusOr<bool> Client::IsServing() {
  grpc::ClientContext context;
  context.set_deadline(Span(patience_));
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel_);
  const auto call = stub.PrepareUnaryCall(
      &context, kHealthCheck, HealthQuestion(v1::LockService::service_full_name()), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // ends by the context's deadline
  queue.Shutdown();
  if (!status.ok()) return StatusOf(status, context);
  return SaysServing(answer);
}

}  // namespace holdfast::client
