// SPDX-License-Identifier: Apache-2.0
//
// Many clients that want one key all the time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/types.pb.h"

namespace holdfast::bench {

struct CrowdResult {
  // From one's sending the release to the next one's receiving its grant.
  std::vector<double> gap_micros;
  double most_grants = 0;  // of any client
  double fewest_grants = 0;
};

// `clients` sessions, a connection each, by turns on the daemons at `addresses`. Each releases the
// key as soon as it has it, and asks for it again in the same message.
absl::StatusOr<CrowdResult> Crowd(const std::vector<std::string>& addresses, size_t clients,
                                  v1::Ordering ordering, absl::Duration span);

}  // namespace holdfast::bench
