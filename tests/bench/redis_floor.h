// SPDX-License-Identifier: Apache-2.0
//
// What a program gets that speaks to Redis itself, without a daemon and without its promises: a
// plain counter in a hash for each lock, changed by two small scripts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast::bench {

// Where Redis listens: a path, or a port of 127.0.0.1 where the path is empty.
struct RedisPlace {
  std::string path;
  uint16_t port = 0;
};

// Pairs a second over one connection with `in_flight` of them going on, each on a key of its own.
absl::StatusOr<double> RedisPairsPerSecond(const RedisPlace& place, int in_flight,
                                           absl::Duration span);

// A port that nobody listens at now.
uint16_t FreePort();

}  // namespace holdfast::bench
