// SPDX-License-Identifier: Apache-2.0
//
// One key or several, taken alike: a request for one becomes one for all, and
// the answers of both kinds one kind.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/mode.h"
#include "holdfast/v1/requests.pb.h"

namespace holdfast::cli {

struct Taken {
  // In the order of the keys; empty: `refusal` says why.
  std::vector<v1::Grant> grants;
  std::string busy_key;
  v1::AcquireResponse refusal;
};

Taken ToTaken(v1::AcquireResponse answer, const std::string& key);
Taken ToTaken(v1::AcquireAllResponse answer);

// The same request for its key and more of them, all in the same mode.
v1::AcquireAllRequest ForAll(const v1::AcquireRequest& one, const ModeOptions& mode,
                             const std::vector<std::string>& more_keys);

// `taker`: a Session or a Client.
template <typename Taker>
absl::StatusOr<Taken> Take(Taker& taker, const v1::AcquireRequest& request, const ModeOptions& mode,
                           const std::vector<std::string>& more_keys) {
  if (more_keys.empty()) {
    auto answer = taker.Acquire(request);
    if (!answer.ok()) return answer.status();
    return ToTaken(*std::move(answer), request.key());
  }
  auto answer = taker.AcquireAll(ForAll(request, mode, more_keys));
  if (!answer.ok()) return answer.status();
  return ToTaken(*std::move(answer));
}

}  // namespace holdfast::cli
