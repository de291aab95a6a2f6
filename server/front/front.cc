// SPDX-License-Identifier: Apache-2.0
#include "server/front/front.h"

#include "absl/strings/str_cat.h"
#include "server/front/convert.h"
#include "src/base/status.h"

namespace holdfast::server {

engine::CommandHead HeadFor(const Front& front, uint64_t channel, uint64_t request_id) {
  return engine::CommandHead{{channel, request_id}, kAnonymous, front.clock->Now()};
}

grpc::Status ToGrpcStatus(const absl::Status& status, grpc::CallbackServerContext& context) {
  if (status.ok()) return grpc::Status::OK;
  v1::Error error;
  ToMessage(status, error);
  context.AddTrailingMetadata("holdfast-reason", std::string(ReasonName(ReasonOf(status))));
  if (!error.field().empty()) context.AddTrailingMetadata("holdfast-field", error.field());
  context.AddTrailingMetadata("holdfast-error-bin", error.SerializeAsString());
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), error.message());
}

absl::Status Unsupported(absl::string_view feature) {
  return Fail(Reason::kUnsupported, feature, absl::StrCat(feature, " is not in this version"));
}

absl::Status QueueFull() {
  return Fail(Reason::kLimitReached, "queue",
              "the daemon has more commands in its queue than it can work off; try again later");
}

}  // namespace holdfast::server
