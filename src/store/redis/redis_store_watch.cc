// SPDX-License-Identifier: Apache-2.0
//
// The part of the Redis store that hears what happens to keys, and tells. The scripts publish while
// the state says that somebody watches; whoever does says so again every kWatchRefresh.
#include <algorithm>
#include <utility>

#include "src/store/redis/news_codec.h"
#include "src/store/redis/redis_store_impl.h"

namespace holdfast::redis {
namespace {

// Keys that are looked at in one go because a hold should be over, and the pause before the next
// ones.
constexpr size_t kLooksAtOnce = 64;
constexpr absl::Duration kShortestPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

void RedisStore::BeginWatch(StoreRequest request) {
  if (!watching_) {
    watching_ = true;
    watch_timer_.Start(limits::kWatchRefresh);
  }
  const uint64_t id = request.id;
  starting_watches_[id] = std::move(request);
  subscriber_.SubscribeNews(id);
}

void RedisStore::EndWatch() {
  if (!watching_) return;
  ForgetWatch();
  subscriber_.UnsubscribeNews();
}

void RedisStore::ForgetWatch() {
  watching_ = false;
  watch_said_ = false;
  watch_timer_.Stop();
  ledger_timer_.Stop();
  ledger_.Clear();
  to_look_through_.clear();
}

bool RedisStore::OnWatchSubscribed(uint64_t request_id) {
  auto started = starting_watches_.extract(request_id);
  if (started.empty()) return false;
  SendBatch();
  auto command = std::make_unique<Command>(Script::kWatch);
  command->requests.push_back(std::move(started.mapped()));
  pipeline_.Send(std::move(command));
  connection_.Flush();
  return true;
}

void RedisStore::OnWatchTimer() {
  if (!watching_) return;
  watch_timer_.Start(limits::kWatchRefresh);
  SayWatching();
}

void RedisStore::SayWatching() {
  if (!up_ || !watch_said_) return;
  SendBatch();
  pipeline_.Send(std::make_unique<Command>(Script::kWatch));
  connection_.Flush();
}

Pipeline::Verdict RedisStore::OnWatchAnswer(std::unique_ptr<Command> command,
                                            const redisReply& reply) {
  const Outcome outcome = DecodeOutcome(reply, 1);
  if (outcome.kind == Outcome::Kind::kNewIncarnation) {
    LearnGrace(outcome.grace, "the store says so");
    return {std::move(command), true};
  }
  const bool done = outcome.kind == Outcome::Kind::kDone;
  if (watching_ && done && std::exchange(watch_said_, true) && !SaysYes(*outcome.rows[0])) {
    Emit({StoreEvent::Kind::kNewsMissed, {}, {}, "the sign of watching was gone for a while"});
  }
  for (const StoreRequest& request : command->requests) {
    Answer(request.id, done ? Result(Subscribed{}) : Result(Unexpected(reply)));
    if (done && watching_) LookThrough(std::get<WatchOp>(request.op));
  }
  return {};
}

void RedisStore::LookThrough(const WatchOp& op) {
  to_look_through_.push_back(ListOp{op.ns, op.prefix, ""});
  if (to_look_through_.size() == 1) LookFurther();
}

void RedisStore::LookFurther() {
  while (!to_look_through_.empty() && (ledger_.full() || !up_)) to_look_through_.pop_front();
  if (to_look_through_.empty()) return;
  SendList(StoreRequest{0, to_look_through_.front()});
  connection_.Flush();
}

void RedisStore::OnOwnLook(const Result& result) {
  if (!watching_) return;
  const BootTime now = clock_.Now();
  if (const auto* report = std::get_if<KeyReport>(&result)) {
    ledger_.See(*report, now);
  } else if (const auto* page = std::get_if<ListPage>(&result)) {
    for (const KeyReport& report : page->keys) ledger_.See(report, now);
    if (!to_look_through_.empty()) {
      to_look_through_.front().cursor = page->next_cursor;
      if (page->next_cursor.empty()) to_look_through_.pop_front();
    }
    LookFurther();
  } else {
    to_look_through_.clear();  // what is there already is known less well
  }
  ArmLedger();
}

void RedisStore::ArmLedger() {
  const absl::Duration left = ledger_.NextDue() - clock_.Now();
  if (left == absl::InfiniteDuration()) return ledger_timer_.Stop();
  ledger_timer_.Start(std::clamp(left, kShortestPause, kLongestPause));
}

void RedisStore::OnLedgerTimer() {
  if (!watching_ || !up_) return;
  HoldLedger::Due due = ledger_.TakeDue(clock_.Now(), kLooksAtOnce);
  for (KeyName& name : due.look_at) {
    auto command = std::make_unique<Command>(Script::kInspect);
    command->names.push_back(name);
    command->requests.push_back(StoreRequest{0, InspectOp{std::move(name)}});
    SendLook(std::move(command));
  }
  for (KeyNews& lost : due.lost) EmitNews(std::move(lost));
  connection_.Flush();
  ArmLedger();
}

void RedisStore::OnNews(absl::string_view message) {
  if (!watching_) return;
  for (std::optional<HeardNews>& heard : DecodeNews(message, layout_)) {
    if (!heard.has_value()) {
      OnNewsGap();
      continue;
    }
    for (KeyNews& lost : ledger_.Hear(*heard, clock_.Now())) EmitNews(std::move(lost));
    EmitNews(std::move(heard->news));
  }
  ArmLedger();
}

void RedisStore::OnNewsGap() {
  if (!watching_) return;
  Emit({StoreEvent::Kind::kNewsMissed, {}, {}, "news may have been missed"});
}

void RedisStore::EmitNews(KeyNews news) {
  StoreEvent event{StoreEvent::Kind::kNews, {}, {}, ""};
  event.news = std::make_shared<const KeyNews>(std::move(news));
  Emit(std::move(event));
}

void RedisStore::NoteAudience(bool watched) {
  if (audience_ == watched) return;
  audience_ = watched;
  StoreEvent event{StoreEvent::Kind::kAudience, {}, {}, ""};
  event.watched = watched;
  Emit(std::move(event));
}

void RedisStore::Publish(const std::string& message) {
  const bool sent = connection_.Call(
      {"PUBLISH", layout_.WatchChannel(), message},
      [this](const redisReply* reply) { untold_ = untold_ || reply == nullptr || IsError(reply); });
  untold_ = untold_ || !sent;
}

void RedisStore::TellOfGaps() {
  if (std::exchange(untold_, false)) Publish(EncodeMissed());
}

}  // namespace holdfast::redis
