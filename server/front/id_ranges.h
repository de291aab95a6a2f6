// SPDX-License-Identifier: Apache-2.0
//
// A set of numbers that remembers ranges instead of numbers: what a client that counts up has used
// is one range, however much that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace holdfast::server {

class IdRanges {
 public:
  enum class Added {
    kNew,
    kKnown,  // was in the set already
    kFull,   // would need more ranges than allowed; not added
  };

  explicit IdRanges(size_t max_ranges) : max_ranges_(max_ranges) {}

  Added Add(uint64_t id);
  size_t ranges() const { return last_of_.size(); }

 private:
  const size_t max_ranges_;
  std::map<uint64_t, uint64_t> last_of_;  // from the first of each range; they never touch
};

}  // namespace holdfast::server
