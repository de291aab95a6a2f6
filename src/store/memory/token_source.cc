// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/token_source.h"

#include <algorithm>
#include <utility>

#include "src/base/limits.h"

namespace holdfast::memory {
namespace {

// A minute of the wall clock: reserving costs an fsync, which may take a while.
constexpr int64_t kTokensPerRange = int64_t{60'000} * limits::kTokensPerMilli;

}  // namespace

TokenCounter::TokenCounter(const WallClock* wall_clock, int64_t last, Reserve reserve)
    : wall_clock_(wall_clock), reserve_(std::move(reserve)), last_(last) {}

std::optional<int64_t> TokenCounter::Next() {
  int64_t token = last_ + 1;
  const int64_t since_epoch_ms = wall_clock_->UnixMillis() - limits::kTokenEpochUnixMillis;
  // A wall clock beyond what a token can hold is wrong, and would leave no number for later.
  if (since_epoch_ms < limits::kMaxToken / limits::kTokensPerMilli) {
    token = std::max(token, since_epoch_ms * limits::kTokensPerMilli);
  }
  if (token > limits::kMaxToken) return std::nullopt;
  if (reserve_ && token >= reserved_below_) {
    if (!reserve_(token + kTokensPerRange).ok()) return std::nullopt;
    reserved_below_ = token + kTokensPerRange;
  }
  last_ = token;
  return token;
}

}  // namespace holdfast::memory
