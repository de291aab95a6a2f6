// SPDX-License-Identifier: Apache-2.0
#include "server/front/lock_service.h"

#include "absl/strings/str_cat.h"
#include "holdfast/v1/lock.grpc.pb.h"
#include "server/front/convert.h"
#include "server/front/decode.h"
#include "server/front/encode_result.h"
#include "server/front/paged_call.h"
#include "server/front/session_stream.h"
#include "server/front/unary_call.h"
#include "server/front/watch_call.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

template <class Base>
using Unary1 = v1::LockService::WithRawCallbackMethod_Acquire<
    v1::LockService::WithRawCallbackMethod_AcquireAll<v1::LockService::WithRawCallbackMethod_Renew<
        v1::LockService::WithRawCallbackMethod_Release<Base>>>>;
template <class Base>
using Unary2 = v1::LockService::WithRawCallbackMethod_Inspect<
    v1::LockService::WithRawCallbackMethod_CheckToken<Base>>;
template <class Base>
using Streams =
    v1::LockService::WithRawCallbackMethod_Session<v1::LockService::WithRawCallbackMethod_List<
        v1::LockService::WithRawCallbackMethod_Watch<Base>>>;

using Context = grpc::CallbackServerContext;
using Bytes = grpc::ByteBuffer;

KeyName NameOf(std::string ns, std::string key, const Front& front) {
  return KeyName{ns.empty() ? front.default_namespace : std::move(ns), std::move(key)};
}

absl::Status CheckTokenRange(int64_t token) {
  if (token >= 1 && token <= limits::kMaxToken) return absl::OkStatus();
  return Fail(Reason::kInvalidField, "fencing_token",
              absl::StrCat("fencing_token must be from 1 to ", limits::kMaxToken));
}

Bytes EncodeCheck(const UnaryCall::Result& result, int64_t asked) {
  v1::CheckTokenResponse response;
  if (const auto* answer = std::get_if<engine::InspectAnswer>(&result)) {
    const KeyReport& report = answer->report;
    // A key that is kept back by a min_hold is nobody's: no ownership has a token now.
    const int64_t current = report.holders.empty() ? 0 : report.token;
    response.set_current_token(current);
    response.set_current(current == asked);
  }
  return Encode(response);
}

class LockServiceImpl final : public Unary1<Unary2<Streams<v1::LockService::Service>>> {
 public:
  explicit LockServiceImpl(const Front& front) : front_(front) {}

 private:
  grpc::ServerUnaryReactor* Acquire(Context* context, const Bytes* request,
                                    Bytes* response) override {
    return UnaryCall::Start<engine::Acquire>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::Acquire> {
          v1::AcquireRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          return ToAcquire(std::move(message), std::move(head), front_.default_namespace);
        },
        EncodeResult<v1::AcquireResponse, engine::Grant, engine::NotAcquired>);
  }

  grpc::ServerUnaryReactor* AcquireAll(Context* context, const Bytes* request,
                                       Bytes* response) override {
    return UnaryCall::Start<engine::AcquireAll>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::AcquireAll> {
          v1::AcquireAllRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          return ToAcquireAll(std::move(message), std::move(head), front_.default_namespace);
        },
        EncodeResult<v1::AcquireAllResponse, engine::AllGranted, engine::NoneGranted>);
  }

  grpc::ServerUnaryReactor* Renew(Context* context, const Bytes* request,
                                  Bytes* response) override {
    return UnaryCall::Start<engine::Renew>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::Renew> {
          v1::RenewRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          return ToRenew(std::move(message), std::move(head), front_.default_namespace);
        },
        EncodeResult<v1::RenewResponse, engine::RenewAnswer>);
  }

  grpc::ServerUnaryReactor* Release(Context* context, const Bytes* request,
                                    Bytes* response) override {
    return UnaryCall::Start<engine::Release>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::Release> {
          v1::ReleaseRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          return ToRelease(std::move(message), std::move(head), front_.default_namespace);
        },
        EncodeResult<v1::ReleaseResponse, engine::ReleaseAnswer>);
  }

  grpc::ServerUnaryReactor* Inspect(Context* context, const Bytes* request,
                                    Bytes* response) override {
    return UnaryCall::Start<engine::Inspect>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::Inspect> {
          v1::InspectRequest message;
          const absl::Status status = Decode(*request, message);
          if (!status.ok()) return status;
          return engine::Inspect{std::move(head),
                                 NameOf(message.namespace_(), message.key(), front_)};
        },
        [](const UnaryCall::Result& result) {
          v1::InspectResponse message;
          if (const auto* answer = std::get_if<engine::InspectAnswer>(&result)) {
            ToMessage(*answer, *message.mutable_state());
          }
          return Encode(message);
        });
  }

  grpc::ServerUnaryReactor* CheckToken(Context* context, const Bytes* request,
                                       Bytes* response) override {
    v1::CheckTokenRequest message;
    absl::Status status = Decode(*request, message);
    if (status.ok()) status = CheckTokenRange(message.fencing_token());
    return UnaryCall::Start<engine::Inspect>(
        front_, context, response,
        [&](engine::CommandHead head) -> absl::StatusOr<engine::Inspect> {
          if (!status.ok()) return status;
          return engine::Inspect{std::move(head),
                                 NameOf(message.namespace_(), message.key(), front_)};
        },
        [asked = message.fencing_token()](const UnaryCall::Result& result) {
          return EncodeCheck(result, asked);
        });
  }

  grpc::ServerBidiReactor<Bytes, Bytes>* Session(Context* context) override {
    return SessionStream::Start(front_, context);
  }
  grpc::ServerWriteReactor<Bytes>* List(Context* context, const Bytes* request) override {
    return PagedCall::Start(front_, context, ListKeys(front_, *request));
  }

  grpc::ServerWriteReactor<Bytes>* Watch(Context* context, const Bytes* request) override {
    return WatchCall::Start(front_, context, *request);
  }

  const Front& front_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLockService(const Front& front) {
  return std::make_unique<LockServiceImpl>(front);
}

}  // namespace holdfast::server
