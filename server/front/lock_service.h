// SPDX-License-Identifier: Apache-2.0
//
// The services as gRPC registers them. All methods take raw bytes (decode.h says why) and are of
// the callback kind, so that no thread waits in a handler.
#pragma once

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "server/front/front.h"

namespace holdfast::server {

inline constexpr char kLockServiceName[] = "holdfast.v1.LockService";

// `front` outlives the service.
std::unique_ptr<grpc::Service> MakeLockService(const Front& front);
std::unique_ptr<grpc::Service> MakeAdminService(const Front& front);

}  // namespace holdfast::server
