// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/redis_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/durations.h"
#include "src/store/redis/redis_store_impl.h"

namespace holdfast {
namespace redis {
namespace {

// Estimates of a grace period's end that differ by less are the same one.
constexpr absl::Duration kGraceTolerance = absl::Milliseconds(50);

Connection::Options ConnectionOptions(const RedisStoreOptions& options, const RedisUrl& url) {
  Connection::Options out;
  out.url = url;
  out.connect_timeout = options.connect_timeout;
  out.reply_timeout = options.reply_timeout;
  out.random = options.random;
  return out;
}

}  // namespace

RedisStore::RedisStore(RedisStoreOptions options, RedisUrl url, uv_loop_t* loop)
    : options_(std::move(options)),
      url_(std::move(url)),
      clock_(*options_.clock),
      layout_(options_.prefix),
      scripts_(options_.max_lease),
      connection_(ConnectionOptions(options_, url_), loop, clock_, this),
      opening_(&connection_, layout_, &scripts_, options_.no_grace, options_.random,
               [this](LogLevel level, absl::string_view text) { Log(level, text); }),
      pipeline_(&connection_, &scripts_, layout_, clock_, this),
      subscriber_(
          ConnectionOptions(options_, url_), loop, clock_, layout_,
          [this](LogLevel level, absl::string_view text) { Log(level, text); }, this),
      grace_timer_(loop, [this] { OnGraceTimer(); }),
      beat_timer_(loop, [this] { OnBeatTimer(); }),
      watch_timer_(loop, [this] { OnWatchTimer(); }),
      ledger_timer_(loop, [this] { OnLedgerTimer(); }) {}

RedisStore::~RedisStore() { Stop(); }

absl::Status RedisStore::Start(StoreListener* listener) {
  listener_ = listener;
  started_ = true;
  return connection_.Start();
}

void RedisStore::Stop() {
  listener_ = nullptr;
  up_ = false;
  grace_timer_.Stop();
  beat_timer_.Stop();
  ForgetWatch();
  subscriber_.Stop();
  connection_.Stop();
  pipeline_.Reset();
  batch_.reset();
  queue_.clear();
}

void RedisStore::OnConnected() {
  opening_.Begin([this](absl::StatusOr<Opening::Outcome> o) { OnOpened(std::move(o)); });
}

void RedisStore::OnOpened(absl::StatusOr<Opening::Outcome> outcome) {
  if (!outcome.ok()) return connection_.Break(std::string(outcome.status().message()));
  const bool news = incarnation_ != outcome->incarnation || outcome->grace > absl::ZeroDuration();
  incarnation_ = outcome->incarnation;
  if (!outcome->same_server) clock_watch_.Reset();
  if (news) {
    Log(LogLevel::kInfo, absl::StrCat("incarnation ", incarnation_, ": ", outcome->why,
                                      "; grace for ", DurationText(outcome->grace)));
  }
  if (!up_) {
    up_ = true;
    down_detail_.clear();
    connection_.Healthy();
    Emit({StoreEvent::Kind::kUp, {}, {}, Describe()});
  }
  LearnGrace(outcome->grace, outcome->why);
  if (news) SayWatching();
  TellOfGaps();
}

void RedisStore::AskWho() {
  opening_.Again([this](absl::StatusOr<Opening::Outcome> outcome) {
    OnOpened(std::move(outcome));
    if (up_) pipeline_.Resume();
  });
}

void RedisStore::OnDisconnected(const std::string& why) {
  const bool was_up = std::exchange(up_, false);
  pipeline_.Reset();
  ForgetWatch();
  audience_ = false;
  subscriber_.Clear();
  starting_watches_.clear();
  Flush();
  if (!was_up && why == down_detail_) return;
  down_detail_ = why;
  Log(LogLevel::kWarn, absl::StrCat("down: ", why));
  Emit({StoreEvent::Kind::kDown, {}, {}, why});
}

void RedisStore::LearnGrace(absl::Duration remaining, const std::string& why) {
  const BootTime until = clock_.Now() + remaining;
  const bool known = grace_until_ != BootTime();
  if (remaining <= absl::ZeroDuration()) {
    if (!known) return;
    grace_until_ = BootTime();
    grace_timer_.Stop();
    return Emit({StoreEvent::Kind::kGrace, {}, absl::ZeroDuration(), why});
  }
  if (known && absl::AbsDuration(until - grace_until_) < kGraceTolerance) return;
  grace_until_ = until;
  grace_timer_.Start(remaining);
  Emit({StoreEvent::Kind::kGrace, {}, remaining, why});
}

void RedisStore::OnGraceTimer() {
  const absl::Duration left = grace_until_ - clock_.Now();
  if (left > absl::ZeroDuration()) return grace_timer_.Start(left);
  LearnGrace(absl::ZeroDuration(), "it is over");
}

void RedisStore::WatchClock(int64_t server_ms, BootTime sent) {
  if (server_ms == 0) return;
  const std::optional<absl::Duration> jump = clock_watch_.Observe(server_ms, sent, clock_.Now());
  if (!jump.has_value()) return;
  const bool forward = *jump > absl::ZeroDuration();
  Log(LogLevel::kWarn,
      absl::StrCat("the server's clock has jumped ", forward ? "forward" : "back", " by ",
                   DurationText(absl::AbsDuration(*jump)),
                   forward ? ": leases end too early" : ": leases of dead holders last longer"));
}

void RedisStore::OnWake(const KeyName& name, absl::string_view daemon) {
  Emit({StoreEvent::Kind::kWake, name, {}, "", std::string(daemon)});
}

void RedisStore::OnSubscriptionLost(uint64_t request_id) { AnswerUnreachable(request_id, false); }

void RedisStore::Answer(uint64_t id, Result result) {
  if (id == 0) return OnOwnLook(result);
  if (listener_ != nullptr) listener_->OnStoreReply({id, std::move(result)});
}

void RedisStore::AnswerUnreachable(uint64_t id, bool maybe_applied) {
  Answer(id, StoreFailure{StoreFailureKind::kUnreachable, maybe_applied,
                          absl::StrCat("no connection to ", Describe())});
}

void RedisStore::Emit(StoreEvent event) {
  if (listener_ != nullptr) listener_->OnStoreEvent(std::move(event));
}

void RedisStore::Log(LogLevel level, absl::string_view message) const {
  if (!options_.log) return;
  options_.log(
      level, absl::StrCat("redis store ", Describe(), options_.daemon_id.empty() ? "" : " daemon ",
                          options_.daemon_id, ": ", message));
}

}  // namespace redis

absl::StatusOr<std::unique_ptr<Store>> MakeRedisStore(RedisStoreOptions options, uv_loop_t* loop) {
  absl::StatusOr<redis::RedisUrl> url = redis::ParseRedisUrl(options.url);
  if (!url.ok()) return url.status();
  return std::make_unique<redis::RedisStore>(std::move(options), *std::move(url), loop);
}

}  // namespace holdfast
