// SPDX-License-Identifier: Apache-2.0
#include "client/cli/several.h"

#include <utility>

namespace holdfast::cli {

Taken ToTaken(v1::AcquireResponse answer, const std::string& key) {
  Taken taken;
  if (answer.has_grant()) taken.grants.push_back(std::move(*answer.mutable_grant()));
  taken.busy_key = key;
  taken.refusal = std::move(answer);
  return taken;
}

Taken ToTaken(v1::AcquireAllResponse answer) {
  Taken taken;
  for (v1::Grant& grant : *answer.mutable_grants()) taken.grants.push_back(std::move(grant));
  taken.busy_key = answer.busy_key();
  taken.refusal.set_outcome(answer.outcome());
  taken.refusal.set_reason(answer.reason());
  taken.refusal.set_queue_length(answer.queue_length());
  taken.refusal.mutable_holders()->Swap(answer.mutable_holders());
  taken.refusal.mutable_cycle()->Swap(answer.mutable_cycle());
  return taken;
}

v1::AcquireAllRequest ForAll(const v1::AcquireRequest& one, const ModeOptions& mode,
                             const std::vector<std::string>& more_keys) {
  v1::AcquireAllRequest all;
  all.set_namespace_(one.namespace_());
  const auto add = [&](const std::string& key) {
    v1::KeyAndMode& wanted = *all.add_keys();
    wanted.set_key(key);
    SetMode(mode, wanted);
  };
  add(one.key());
  for (const std::string& key : more_keys) add(key);
  all.set_owner(one.owner());
  all.set_note(one.note());
  all.set_ordering(one.ordering());
  if (one.has_wait()) *all.mutable_wait() = one.wait();
  if (one.has_lease()) *all.mutable_lease() = one.lease();
  if (one.has_max_hold()) *all.mutable_max_hold() = one.max_hold();
  if (one.has_min_hold()) *all.mutable_min_hold() = one.min_hold();
  return all;
}

}  // namespace holdfast::cli
