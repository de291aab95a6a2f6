// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/handoff_floor.h"

#include <hiredis/hiredis.h>

#include <array>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "src/store/redis/codec.h"
#include "src/store/redis/script_set.h"

namespace holdfast::bench {
namespace {

constexpr absl::string_view kIncarnation = "bench";

struct Freer {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, Freer>;
using Answer = std::unique_ptr<redisReply, Freer>;

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("Redis, handing over: ", what));
}

// Two owners take the key from each other.
class Handoffs {
 public:
  explicit Handoffs(Context context) : context_(std::move(context)) {}

  absl::Status Prepare() {
    if (context_ == nullptr || context_->err != 0) return Failed("cannot connect");
    redis::ServerInfo server;
    server.major_version = 7;
    scripts_.Build(server);
    const absl::string_view text = scripts_.text(redis::Script::kApply);
    const Answer loaded = Call({"SCRIPT", "LOAD", text});
    if (loaded == nullptr || loaded->type != REDIS_REPLY_STRING) return Failed("no script");
    sha_.assign(loaded->str, loaded->len);
    const std::string inc(kIncarnation);
    Call({"HSET", layout_.state_key(), "inc", inc, "grace", "0"});
    Call({"DEL", layout_.LockKey(name_)});
    const std::array<StoreRequest, 1> first = {StoreRequest{1, Take(0)}};
    return Apply(first) == nullptr ? Failed("no grant") : absl::OkStatus();
  }

  absl::StatusOr<double> Next() {
    const std::array<StoreRequest, 2> both = {StoreRequest{1, Give(turn_)},
                                              StoreRequest{2, Take(turn_ + 1)}};
    ++turn_;
    Encode(both);
    const BootTime sent = clock_.Now();
    const Answer answer = Send(writer_.wire());
    const BootTime received = clock_.Now();
    const bool granted = answer != nullptr && answer->type == REDIS_REPLY_ARRAY &&
                         answer->elements == 4 && answer->element[2]->integer == 5 &&
                         answer->element[3]->type == REDIS_REPLY_INTEGER;
    if (!granted) return Failed("not granted");
    return absl::ToDoubleMicroseconds(received - sent);
  }

 private:
  HoldRef Hold(int turn) const {
    return {name_, absl::StrCat("owner-of-26-characters-nr-", turn % 2), absl::StrCat("hold", turn),
            "session", 1};
  }
  AcquireOp Take(int turn) const {
    AcquireOp take;
    take.hold = Hold(turn);
    take.will_wait = true;
    take.lease = absl::Seconds(30);
    take.max_hold = absl::Minutes(3);
    take.op_id = absl::StrCat("a", turn);
    return take;
  }
  ReleaseOp Give(int turn) const {
    return {Hold(turn), ReleaseKind::kOne, absl::StrCat("r", turn)};
  }

  void Encode(absl::Span<const StoreRequest> requests) {
    writer_.Begin(2 + redis::ApplyArgs(requests.size()));
    writer_.Arg("EVALSHA");
    writer_.Arg(sha_);
    redis::EncodeApply(requests, std::string(kIncarnation), "life", layout_, &packer_, &writer_);
  }
  Answer Apply(absl::Span<const StoreRequest> requests) {
    Encode(requests);
    return Send(writer_.wire());
  }
  Answer Call(std::initializer_list<absl::string_view> args) { return Send(writer_.Command(args)); }
  Answer Send(absl::string_view wire) {
    void* reply = nullptr;
    redisAppendFormattedCommand(context_.get(), wire.data(), wire.size());
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) return nullptr;
    return Answer(static_cast<redisReply*>(reply));
  }

  const MachineClock clock_;
  const Context context_;
  const redis::KeyLayout layout_{"bench-floor:"};
  const KeyName name_{"default", "handoff"};
  redis::ScriptSet scripts_{absl::Minutes(1)};
  redis::StringPacker packer_;
  redis::RespWriter writer_;
  std::string sha_;
  int turn_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<double>> RedisHandoffMicros(const RedisPlace& place,
                                                       absl::Duration span) {
  Handoffs handoffs(Context(place.path.empty() ? redisConnect("127.0.0.1", place.port)
                                               : redisConnectUnix(place.path.c_str())));
  if (absl::Status status = handoffs.Prepare(); !status.ok()) return status;
  const MachineClock clock;
  std::vector<double> micros;
  for (const BootTime end = clock.Now() + span; clock.Now() < end;) {
    const absl::StatusOr<double> one = handoffs.Next();
    if (!one.ok()) return one.status();
    micros.push_back(*one);
  }
  return micros;
}

}  // namespace holdfast::bench
