// SPDX-License-Identifier: Apache-2.0
#include "src/engine/deadlock.h"

#include <utility>

#include "absl/container/flat_hash_set.h"

namespace holdfast::engine {
namespace {

// A waiter on the way from the start, and what is still to be tried from it.
struct Step {
  LocalId waiter = 0;
  std::vector<WaitEdge> edges;
  size_t next = 0;  // the one before it is the way to the next step
};

WaitCycle CycleOf(const std::vector<Step>& path) {
  WaitCycle cycle;
  for (const Step& step : path) {
    cycle.waiters.push_back(step.waiter);
    if (!step.edges[step.next - 1].certain) cycle.doubtful.push_back(step.waiter);
  }
  return cycle;
}

}  // namespace

std::optional<WaitCycle> FindCycle(LocalId start,
                                   absl::FunctionRef<std::vector<WaitEdge>(LocalId)> edges_of,
                                   size_t max_length, size_t* budget) {
  absl::flat_hash_set<LocalId> seen = {start};
  std::vector<Step> path;
  const auto enter = [&](LocalId waiter) {
    if (*budget == 0) return false;
    --*budget;
    path.push_back(Step{waiter, edges_of(waiter)});
    return true;
  };
  if (!enter(start)) return std::nullopt;
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == step.edges.size()) {
      path.pop_back();
      continue;
    }
    const LocalId to = step.edges[step.next++].to;
    if (to == start) return CycleOf(path);
    if (path.size() == max_length || !seen.insert(to).second) continue;
    if (!enter(to)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace holdfast::engine
