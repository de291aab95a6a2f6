// SPDX-License-Identifier: Apache-2.0
//
// Listens: the services, health and reflection on all --listen addresses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/front/front.h"

namespace holdfast::server {

// Thread-safe once started.
class GrpcServer {
 public:
  // UNAVAILABLE with the address and what is wrong with it. The front outlives the server. Health
  // says NOT_SERVING for the lock service until SetServing(true).
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const std::vector<std::string>& listen,
                                                           const Front& front);
  virtual ~GrpcServer() = default;

  // As given, but with the port that was chosen where 0 was asked for.
  virtual const std::vector<std::string>& addresses() const = 0;

  // The health of holdfast.v1.LockService.
  virtual void SetServing(bool serving) = 0;
  // No health at all any more, for good: the daemon drains.
  virtual void SetDraining() = 0;

  // Takes no calls any more, waits for those under way, and cancels them when `limit` has passed.
  virtual void Shutdown(absl::Duration limit) = 0;
};

}  // namespace holdfast::server
