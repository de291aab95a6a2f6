// SPDX-License-Identifier: Apache-2.0
//
// From --store=URL to a store: the only place that knows which stores there are.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/ids.h"
#include "src/store/store.h"

struct uv_loop_s;

namespace holdfast::server {

struct StoreOptions {
  std::string url;
  std::string redis_prefix;
  absl::Duration max_lease;
  bool no_grace = false;  // nobody holds locks on it: skip the grace period at start
  std::string daemon_id;
};

// What stores need besides; each outlives the store.
struct StoreParts {
  const Clock* clock;
  const WallClock* wall_clock;
  IdSource* ids;
};

// Whether a URL names a store that this version has, in a form that it understands. The message
// says what is allowed and shows no password.
absl::Status CheckStoreUrl(absl::string_view url);

// The URL without its secrets: "redis://user:***@host:6379/0".
std::string MaskStoreUrl(absl::string_view url);

// Makes the store on `loop`, which must outlive it and whose thread then owns it. Nothing is
// connected or read before Store::Start.
absl::StatusOr<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, uv_loop_s* loop,
                                                 const StoreParts& parts);

}  // namespace holdfast::server
