// SPDX-License-Identifier: Apache-2.0
#include "holdfast/v1/admin.grpc.pb.h"
#include "server/front/convert.h"
#include "server/front/decode.h"
#include "server/front/encode_result.h"
#include "server/front/lock_service.h"
#include "server/front/paged_call.h"
#include "server/front/unary_call.h"
#include "server/front/unsupported.h"
#include "server/log.h"

namespace holdfast::server {
namespace {

using Context = grpc::CallbackServerContext;
using Bytes = grpc::ByteBuffer;

template <class Base>
using Calls = v1::AdminService::WithRawCallbackMethod_ForceRelease<
    v1::AdminService::WithRawCallbackMethod_ListSessions<
        v1::AdminService::WithRawCallbackMethod_CloseSession<
            v1::AdminService::WithRawCallbackMethod_Drain<
                v1::AdminService::WithRawCallbackMethod_Diagnose<Base>>>>>;

// What an operator does to others is worth a line, whatever comes of it.
void LogForced(const engine::ForceRelease& command, const Context& context) {
  LogWarn(command.immediate ? "an operator ends holds at once" : "an operator ends holds",
          {{"key", command.name.ToString()},
           {"hold", command.hold_id},
           {"note", command.note},
           {"peer", context.peer()}});
}

class AdminServiceImpl final : public Calls<v1::AdminService::Service> {
 public:
  explicit AdminServiceImpl(const Front& front) : front_(front) {}

 private:
  grpc::ServerUnaryReactor* ForceRelease(Context* context, const Bytes* request,
                                         Bytes* response) override {
    return UnaryCall::Start<engine::ForceRelease>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::ForceRelease> {
          v1::ForceReleaseRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          absl::StatusOr<engine::ForceRelease> command =
              ToForceRelease(std::move(message), std::move(head), front_.default_namespace);
          if (command.ok()) LogForced(*command, *context);
          return command;
        },
        EncodeResult<v1::ForceReleaseResponse, engine::ForceAnswer>);
  }

  grpc::ServerWriteReactor<Bytes>* ListSessions(Context* context, const Bytes* request) override {
    return PagedCall::Start(front_, context, server::ListSessions(*request));
  }

  grpc::ServerUnaryReactor* CloseSession(Context* context, const Bytes* request,
                                         Bytes* response) override {
    return UnaryCall::Start<engine::CloseSession>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::CloseSession> {
          v1::CloseSessionRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          LogWarn("an operator closes a session",
                  {{"session", message.session_id()}, {"peer", context->peer()}});
          return engine::CloseSession{std::move(head), std::move(*message.mutable_session_id())};
        },
        EncodeResult<v1::CloseSessionResponse, engine::CloseSessionAnswer>);
  }

  grpc::ServerUnaryReactor* Drain(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "drain");
  }
  grpc::ServerUnaryReactor* Diagnose(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "diagnose");
  }

  const Front& front_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(const Front& front) {
  return std::make_unique<AdminServiceImpl>(front);
}

}  // namespace holdfast::server
