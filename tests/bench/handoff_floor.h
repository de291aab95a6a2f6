// SPDX-License-Identifier: Apache-2.0
//
// What a handoff costs at Redis alone: the store's own script, which gives a key back and grants it
// to the next owner in one call, from a plain blocking connection.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/bench/redis_floor.h"

namespace holdfast::bench {

// Round trips, one after the other, in microseconds.
absl::StatusOr<std::vector<double>> RedisHandoffMicros(const RedisPlace& place,
                                                       absl::Duration span);

}  // namespace holdfast::bench
