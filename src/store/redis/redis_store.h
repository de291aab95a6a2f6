// SPDX-License-Identifier: Apache-2.0
//
// A Store kept in one Redis server. What lies there is described in
// docs/redis.md and in the scripts; the rules for incarnations and grace are in
// opening.h and scripts/open.lua.
//
//   auto store = MakeRedisStore({.url = "redis://127.0.0.1", ...}, loop);
//   if (!store.ok()) ...                       // the URL is wrong
//   (*store)->Start(&listener);                // kUp or kDown follows
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/base/limits.h"
#include "src/store/redis/log.h"
#include "src/store/store.h"

namespace holdfast {

struct RedisStoreOptions {
  std::string url;
  std::string prefix = "holdfast:";
  // How long grace lasts. No lease may be longer.
  absl::Duration max_lease = limits::kDefaultMaxLease;
  // The operator vouches that nobody holds: the first successful start of this process opens no
  // grace period and ends one that runs. Later ones open it all the same.
  bool no_grace = false;
  std::string daemon_id;  // for the log
  // For the pauses between attempts, and to name a server that hides its run id.
  std::function<uint64_t()> random;
  const Clock* clock = nullptr;  // outlives the store
  redis::LogFunction log;        // may be empty

  absl::Duration connect_timeout = absl::Seconds(2);
  // So long without any reply while one is due, and the connection counts as broken.
  absl::Duration reply_timeout = absl::Seconds(2);
};

// INVALID_ARGUMENT where the URL is wrong. The store runs on `loop`, which has to run once more
// after the store's end, until its closed handles are gone.
absl::StatusOr<std::unique_ptr<Store>> MakeRedisStore(RedisStoreOptions options, uv_loop_t* loop);

}  // namespace holdfast
