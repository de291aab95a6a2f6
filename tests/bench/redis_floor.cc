// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/redis_floor.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"

namespace holdfast::bench {
namespace {

constexpr absl::string_view kAcquire = R"(
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return -1
end
return redis.call('pttl', KEYS[1]))";

constexpr absl::string_view kRelease = R"(
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
return 1)";

constexpr absl::string_view kOwner = "9f86d081884c7d659a2feaa0c55ad015";
constexpr absl::string_view kLeaseMs = "30000";
constexpr int kSilenceLimitMs = 10'000;

absl::Status Unavailable(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("Redis: ", why));
}

// What goes over the wire, made beforehand.
std::string Wire(const std::vector<absl::string_view>& args) {
  std::string wire = absl::StrCat("*", args.size(), "\r\n");
  for (absl::string_view arg : args) absl::StrAppend(&wire, "$", arg.size(), "\r\n", arg, "\r\n");
  return wire;
}

struct Freer {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisAsyncContext* context) const { redisAsyncFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, Freer>;
using Reply = std::unique_ptr<redisReply, Freer>;

Context Open(const RedisPlace& place) {
  return Context(place.path.empty() ? redisConnect("127.0.0.1", place.port)
                                    : redisConnectUnix(place.path.c_str()));
}

// Sends, and waits for the answer.
Reply Call(redisContext* context, const std::string& wire) {
  void* reply = nullptr;
  redisAppendFormattedCommand(context, wire.data(), wire.size());
  if (redisGetReply(context, &reply) != REDIS_OK) return nullptr;
  return Reply(static_cast<redisReply*>(reply));
}

struct Scripts {
  std::string acquire;
  std::string release;
};

absl::StatusOr<Scripts> Load(redisContext* context) {
  if (context == nullptr || context->err != 0) return Unavailable("cannot connect");
  const Reply acquire = Call(context, Wire({"SCRIPT", "LOAD", kAcquire}));
  const Reply release = Call(context, Wire({"SCRIPT", "LOAD", kRelease}));
  for (const Reply* reply : {&acquire, &release}) {
    if (*reply == nullptr || (*reply)->type != REDIS_REPLY_STRING) {
      return Unavailable("cannot load a script");
    }
  }
  return Scripts{acquire->str, release->str};
}

std::string CallOf(const std::string& sha, absl::string_view key) {
  return Wire({"EVALSHA", sha, "1", key, kOwner, kLeaseMs});
}

// One asynchronous connection, and the smallest loop there is: what the answers of one read bring
// about goes out in one write.
class PairsLoad {
 public:
  PairsLoad(redisAsyncContext* context, const Scripts& scripts, int in_flight) : context_(context) {
    for (int i = 0; i < in_flight; ++i) {
      const std::string key = absl::StrCat("bench:floor:", i);
      pairs_.push_back({this, {CallOf(scripts.acquire, key), CallOf(scripts.release, key)}, 0});
    }
    context_->ev.data = this;
    context_->ev.addWrite = [](void* self) { static_cast<PairsLoad*>(self)->writing_ = true; };
    context_->ev.delWrite = [](void* self) { static_cast<PairsLoad*>(self)->writing_ = false; };
  }

  absl::StatusOr<double> Run(absl::Duration span) {
    const BootTime begin = clock_.Now();
    end_ = begin + span;
    writing_ = true;  // connecting ends with the first write
    for (Pair& pair : pairs_) Send(pair);
    while (busy_ > 0) {
      if (writing_) redisAsyncHandleWrite(context_);
      pollfd ready = {context_->c.fd, static_cast<short>(writing_ ? POLLIN | POLLOUT : POLLIN), 0};
      if (poll(&ready, 1, kSilenceLimitMs) != 1) return Unavailable("no answer");
      if ((ready.revents & POLLIN) != 0) redisAsyncHandleRead(context_);
      if (failed_) return Unavailable("a pair failed");
    }
    return static_cast<double>(count_) / absl::ToDoubleSeconds(clock_.Now() - begin);
  }

 private:
  struct Pair {
    PairsLoad* load;
    std::array<std::string, 2> wires;  // acquire, release
    size_t next;
  };

  void Send(Pair& pair) {
    ++busy_;
    const std::string& wire = pair.wires[pair.next];
    redisAsyncFormattedCommand(context_, OnReply, &pair, wire.data(), wire.size());
  }

  static void OnReply(redisAsyncContext*, void* data, void* of) {
    auto* reply = static_cast<redisReply*>(data);
    Pair& pair = *static_cast<Pair*>(of);
    PairsLoad& load = *pair.load;
    --load.busy_;
    const bool acquired = pair.next == 0;
    if (reply == nullptr || reply->integer != (acquired ? -1 : 1)) {
      load.failed_ = true;
      return;
    }
    pair.next = acquired ? 1 : 0;
    if (!acquired) ++load.count_;
    if (acquired || load.clock_.Now() < load.end_) load.Send(pair);
  }

  const MachineClock clock_;
  redisAsyncContext* const context_;
  std::vector<Pair> pairs_;
  bool writing_ = false;
  bool failed_ = false;
  size_t busy_ = 0;
  int64_t count_ = 0;
  BootTime end_;
};

}  // namespace

absl::StatusOr<double> RedisPairsPerSecond(const RedisPlace& place, int in_flight,
                                           absl::Duration span) {
  const Context loader = Open(place);
  const absl::StatusOr<Scripts> scripts = Load(loader.get());
  if (!scripts.ok()) return scripts.status();
  redisAsyncContext* context = place.path.empty() ? redisAsyncConnect("127.0.0.1", place.port)
                                                  : redisAsyncConnectUnix(place.path.c_str());
  if (context == nullptr || context->err != 0) return Unavailable("cannot connect");
  PairsLoad load(context, *scripts, in_flight);
  const absl::StatusOr<double> result = load.Run(span);
  redisAsyncFree(context);
  return result;
}

uint16_t FreePort() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool found = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return found ? ntohs(address.sin_port) : uint16_t{0};
}

}  // namespace holdfast::bench
