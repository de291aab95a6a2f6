// SPDX-License-Identifier: Apache-2.0
#include "server/front/id_ranges.h"

#include <iterator>

namespace holdfast::server {

IdRanges::Added IdRanges::Add(uint64_t id) {
  const auto after = last_of_.upper_bound(id);
  const auto before = after == last_of_.begin() ? last_of_.end() : std::prev(after);
  if (before != last_of_.end() && id <= before->second) return Added::kKnown;

  const bool joins_before = before != last_of_.end() && before->second + 1 == id;
  const bool joins_after = after != last_of_.end() && id + 1 == after->first;
  if (joins_before) {
    before->second = joins_after ? after->second : id;
    if (joins_after) last_of_.erase(after);
    return Added::kNew;
  }
  if (joins_after) {
    auto range = last_of_.extract(after);
    range.key() = id;
    last_of_.insert(std::move(range));
    return Added::kNew;
  }
  if (last_of_.size() >= max_ranges_) return Added::kFull;
  last_of_.emplace(id, id);
  return Added::kNew;
}

}  // namespace holdfast::server
