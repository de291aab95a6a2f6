// SPDX-License-Identifier: Apache-2.0
//
// Where fencing tokens come from: max(last + 1, milliseconds since 2024 x 4096).
// The wall clock lets them grow over a loss of all data, the count when the
// clock stands still or is set back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "src/base/clock.h"

namespace holdfast::memory {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Greater than every token before; nullopt where none can be had that surely is.
  virtual std::optional<int64_t> Next() = 0;
};

// Counts as said above, and has ranges reserved before it gives any token of
// them out: whoever reserves them writes them down, so that the next life
// begins after the last one that this life may have used.
class TokenCounter final : public TokenSource {
 public:
  // Notes durably that tokens below `below` may be given out.
  using Reserve = std::function<absl::Status(int64_t below)>;

  // `last`: no token up to it is given out. Without `reserve` ranges need no noting.
  // `wall_clock` must outlive the counter.
  TokenCounter(const WallClock* wall_clock, int64_t last, Reserve reserve = nullptr);

  std::optional<int64_t> Next() override;
  int64_t last() const { return last_; }

 private:
  const WallClock* const wall_clock_;
  const Reserve reserve_;
  int64_t last_;
  int64_t reserved_below_ = 0;
};

}  // namespace holdfast::memory
