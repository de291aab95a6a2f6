// SPDX-License-Identifier: Apache-2.0
//
// AdminService is part of the contract, and none of it of this version: each call says so by its
// name.
#include "holdfast/v1/admin.grpc.pb.h"
#include "server/front/lock_service.h"
#include "server/front/unsupported.h"

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

class AdminServiceImpl final : public Calls<v1::AdminService::Service> {
  grpc::ServerUnaryReactor* ForceRelease(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "force_release");
  }
  grpc::ServerWriteReactor<Bytes>* ListSessions(Context* context, const Bytes*) override {
    return UnsupportedStream(context, "list_sessions");
  }
  grpc::ServerUnaryReactor* CloseSession(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "close_session");
  }
  grpc::ServerUnaryReactor* Drain(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "drain");
  }
  grpc::ServerUnaryReactor* Diagnose(Context* context, const Bytes*, Bytes*) override {
    return UnsupportedUnary(context, "diagnose");
  }
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService() { return std::make_unique<AdminServiceImpl>(); }

}  // namespace holdfast::server
