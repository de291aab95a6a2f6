// SPDX-License-Identifier: Apache-2.0
//
// Both sides of watching: what this engine's watchers hear, and what it has told to everybody's.
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/validate.h"

namespace holdfast::engine {

void EngineCore::Handle(engine::Watch command) {
  const ReplyTo reply_to = command.head.reply_to;
  absl::Status valid = Validate(command);
  if (valid.ok() && !store_up_) valid = StoreUnreachable();
  if (valid.ok() && watches_.size() >= limits::kMaxWatchers) {
    valid = Fail(Reason::kLimitReached, "watchers", "as many watch as this daemon allows");
  }
  if (!valid.ok()) return Answer1(reply_to, valid);
  Watcher watcher{.to = reply_to, .ns = std::move(command.ns), .prefix = std::move(command.prefix)};
  AskToWatch(watcher);
  watches_.Add(std::move(watcher));
}

void EngineCore::AskToWatch(Watcher& watcher) {
  Pending pending;
  pending.kind = Pending::Kind::kWatch;
  pending.channel = watcher.to.channel;
  watcher.request = Submit(WatchOp{watcher.ns, watcher.prefix}, std::move(pending));
}

void EngineCore::OnWatchReply(const Pending& pending, const StoreReply& reply) {
  Watcher* const watcher = watches_.Find(pending.channel);
  if (watcher == nullptr || watcher->request != reply.id) return;
  watcher->request = 0;
  if (const auto* failure = std::get_if<StoreFailure>(&reply.result)) {
    const bool gone = failure->kind == StoreFailureKind::kUnreachable;
    if (watcher->began && gone) return;  // it is asked again at kUp
    const ReplyTo to = watcher->to;
    if (watcher->began) {
      Send(to.channel, EndStream{StatusOf(*failure)});
    } else {
      Answer1(to, StatusOf(*failure));
    }
    return StopWatching(to.channel);
  }
  if (!watcher->began) {
    watcher->began = true;
    return Answer1(watcher->to, WatchBegan{});
  }
  if (std::exchange(watcher->missed, false)) Send(watcher->to.channel, Watched{});
}

void EngineCore::StopWatching(uint64_t channel) {
  if (!watches_.Remove(channel) || watches_.size() > 0) return;
  out_.requests.push_back(StoreRequest{++last_request_, UnwatchOp{}});
}

void EngineCore::OnNews(const StoreEvent& event) {
  if (watches_.size() == 0) return;
  const std::shared_ptr<const KeyNews> news = watches_.Judge(event.news);
  if (news == nullptr) return;
  for (Watcher* watcher : watches_.All()) {
    if (watcher->began && watcher->Cares(news->name)) Send(watcher->to.channel, Watched{news});
  }
}

void EngineCore::OnNewsMissed() {
  for (const Watcher* watcher : watches_.All()) {
    if (watcher->began && !watcher->missed) Send(watcher->to.channel, Watched{});
  }
}

void EngineCore::ResumeWatches() {
  for (Watcher* watcher : watches_.All()) AskToWatch(*watcher);
}

void EngineCore::SuspendWatches() {
  audience_ = false;  // as far as is known
  for (Watcher* watcher : watches_.All()) watcher->missed = watcher->began;
}

void EngineCore::Tell(KeyNews news) {
  if (!audience_ && watches_.size() == 0) return;
  out_.requests.push_back(StoreRequest{++last_request_, TellOp{std::move(news)}});
}

KeyNews EngineCore::NewsOf(KeyNews::Kind kind, const Hold& hold) {
  KeyNews news;
  news.kind = kind;
  news.name = hold.ref.name;
  news.owner = hold.ref.owner;
  news.hold_id = hold.ref.hold_id;
  news.session = hold.ref.session;
  news.mode = hold.mode;
  news.token = hold.token;
  news.note = hold.note;
  return news;
}

void EngineCore::TellLost(const Hold& hold, LossReason reason) {
  KeyNews news = NewsOf(KeyNews::Kind::kLost, hold);
  news.reason = reason;
  Tell(std::move(news));
}

void EngineCore::TellEnd(const Hold& hold) {
  // Of one that nobody was told of, so that its end is no news either.
  if (hold.partial) return Tell(NewsOf(KeyNews::Kind::kUndone, hold));
  TellLost(hold, hold.loss);
}

void EngineCore::TellWaiting(Waiter& waiter) {
  if (waiter.told || !waiter.waits() || waiter.set_holds_some) return;
  waiter.told = true;
  const Acquire& command = waiter.command;
  KeyNews news;
  news.kind = KeyNews::Kind::kWaiting;
  news.name = command.name;
  news.owner = command.owner;
  news.session = command.session_id;
  news.mode = command.mode;
  news.note = command.note;
  news.queue_length = static_cast<uint32_t>(waiter.line->waiters.size());
  Tell(std::move(news));
}

void EngineCore::TellGranted(const AcquireSet& set, const SetMember& member) {
  const Grant& grant = *member.grant;
  if (!grant.new_hold || set.replay_only) return;
  KeyNews news;
  news.kind = KeyNews::Kind::kGranted;
  news.name = grant.name;
  news.owner = grant.owner;
  news.hold_id = grant.hold_id;
  news.session = grant.session_id;
  news.mode = grant.mode;
  news.token = grant.token;
  news.note = set.command.note;
  news.lease = std::max(set.SentOf(grant) + grant.lease - now_, absl::ZeroDuration());
  Tell(std::move(news));
}

}  // namespace holdfast::engine
