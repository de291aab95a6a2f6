// SPDX-License-Identifier: Apache-2.0
#include "server/store_factory.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/log.h"
#include "src/base/status.h"
#include "src/store/memory/memory_store.h"
#include "src/store/redis/redis_store.h"
#include "src/store/redis/redis_url.h"

namespace holdfast::server {
namespace {

constexpr absl::string_view kMemory = "memory:";

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The folder that the service manager made for us, or the user's own.
absl::StatusOr<std::string> DefaultStateFolder() {
  // systemd separates several with colons; ours is the first.
  const std::string managed = FromEnvironment("STATE_DIRECTORY");
  if (!managed.empty()) return managed.substr(0, managed.find(':'));
  const std::string state_home = FromEnvironment("XDG_STATE_HOME");
  if (absl::StartsWith(state_home, "/")) return absl::StrCat(state_home, "/holdfast");
  const std::string home = FromEnvironment("HOME");
  if (!home.empty()) return absl::StrCat(home, "/.local/state/holdfast");
  return absl::InvalidArgumentError(
      "memory: has no folder for its state: neither STATE_DIRECTORY nor XDG_STATE_HOME nor HOME is "
      "set; name one as memory:/absolute/folder");
}

void LogForRedis(redis::LogLevel level, absl::string_view message) {
  switch (level) {
    case redis::LogLevel::kError:
      return LogError(message);
    case redis::LogLevel::kWarn:
      return LogWarn(message);
    case redis::LogLevel::kInfo:
      return LogInfo(message);
    case redis::LogLevel::kDebug:
      return LogDebug(message);
  }
}

uint64_t RandomNumber(IdSource& ids) {
  const std::string id = ids.NewId();
  uint64_t number = 0;
  std::memcpy(&number, id.data(), sizeof(number));
  return number;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, uv_loop_s* loop,
                                                 const StoreParts& parts) {
  if (absl::StartsWith(options.url, kMemory)) {
    std::string folder = options.url.substr(kMemory.size());
    if (folder.empty()) {
      absl::StatusOr<std::string> found = DefaultStateFolder();
      if (!found.ok()) return found.status();
      folder = *std::move(found);
    }
    MemoryStoreOptions memory;
    memory.folder = std::move(folder);
    memory.max_lease = options.max_lease;
    memory.no_grace = options.no_grace;
    memory.clock = parts.clock;
    memory.wall_clock = parts.wall_clock;
    return MakeMemoryStore(std::move(memory), loop);
  }
  absl::Status valid = CheckStoreUrl(options.url);
  if (!valid.ok()) return valid;
  RedisStoreOptions redis;
  redis.url = options.url;
  redis.prefix = options.redis_prefix;
  redis.max_lease = options.max_lease;
  redis.no_grace = options.no_grace;
  redis.daemon_id = options.daemon_id;
  redis.random = [ids = parts.ids] { return RandomNumber(*ids); };
  redis.clock = parts.clock;
  redis.log = LogForRedis;
  return MakeRedisStore(std::move(redis), loop);
}

}  // namespace holdfast::server
