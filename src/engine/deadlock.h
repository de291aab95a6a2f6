// SPDX-License-Identifier: Apache-2.0
//
// Finding owners who wait for each other. Pure: the graph is the caller's.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/engine/records.h"

namespace holdfast::engine {

// A waiter waits for a key that the owner of the waiter `to` holds. Not `certain`: or did when last
// looked at, which may have been before that owner began to wait.
struct WaitEdge {
  LocalId to = 0;
  bool certain = false;
};

struct WaitCycle {
  // Each waits for a key that the next one's owner holds, and the last one for one of the first.
  std::vector<LocalId> waiters;
  // Those among them of whose key the holders must be looked at again.
  std::vector<LocalId> doubtful;
};

// A cycle through `start`, if there is one of at most `max_length` waiters. Each waiter that is
// looked at costs one of `budget`; none is looked at twice, and nothing is found when it is used
// up.
std::optional<WaitCycle> FindCycle(LocalId start,
                                   absl::FunctionRef<std::vector<WaitEdge>(LocalId)> edges_of,
                                   size_t max_length, size_t* budget);

}  // namespace holdfast::engine
