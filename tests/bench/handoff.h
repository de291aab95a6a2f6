// SPDX-License-Identifier: Apache-2.0
//
// How long a key lies idle between a holder's release and the next one's grant.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast::bench {

// Two clients with a connection each hand one key to and fro for `span`: microseconds of each
// handoff, from one's sending the release to the other's receiving its grant.
absl::StatusOr<std::vector<double>> HandoffMicros(const std::string& address, absl::Duration span);

}  // namespace holdfast::bench
