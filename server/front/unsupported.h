// SPDX-License-Identifier: Apache-2.0
//
// Calls of the contract that this version answers with UNIMPLEMENTED, UNSUPPORTED and their name.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/strings/string_view.h"
#include "server/front/front.h"

namespace holdfast::server {

inline grpc::ServerUnaryReactor* UnsupportedUnary(grpc::CallbackServerContext* context,
                                                  absl::string_view feature) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(Unsupported(feature), *context));
  return reactor;
}

}  // namespace holdfast::server
