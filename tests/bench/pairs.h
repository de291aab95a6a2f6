// SPDX-License-Identifier: Apache-2.0
//
// Loads of one session: acquire and release over and over, and pings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast::bench {

struct PairsResult {
  double per_second = 0;
  double count = 0;
  std::vector<double> micros;  // of each pair, from sending the acquire to the release's answer
};

// Keeps `in_flight` pairs going on one stream for `span`, each on a key of its own.
absl::StatusOr<PairsResult> StreamPairs(const std::string& address, int in_flight,
                                        absl::Duration span);

// One pair after the other as unary calls, as a client does that knows no sessions.
absl::StatusOr<PairsResult> UnaryPairs(const std::string& address, absl::Duration span);

// One ping after the other on a stream: microseconds of each round trip.
absl::StatusOr<std::vector<double>> PingMicros(const std::string& address, absl::Duration span);

}  // namespace holdfast::bench
