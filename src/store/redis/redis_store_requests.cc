// SPDX-License-Identifier: Apache-2.0
//
// The part of the Redis store that sends.
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/store/redis/news_codec.h"
#include "src/store/redis/redis_store_impl.h"

namespace holdfast::redis {
namespace {

// Keys that one step of a listing looks at, and that one script call reports on.
constexpr absl::string_view kScanCount = "200";
constexpr size_t kNamesPerLook = 128;
// Acquires and releases in one script call, which has to stay well below a millisecond.
constexpr size_t kOpsPerCall = 64;
// Whoever stands in a line comes back to it every kWakeRetry. So long after the last one did, the
// daemon gives no sign of life for it any more.
constexpr absl::Duration kStandsFor = absl::Seconds(15);

const KeyName& NameOf(const StoreRequest& request) {
  struct Visitor {
    const KeyName& operator()(const AcquireOp& op) const { return op.hold.name; }
    const KeyName& operator()(const ReleaseOp& op) const { return op.hold.name; }
    const KeyName& operator()(const PassOnOp& op) const { return op.name; }
    const KeyName& operator()(const RenewOp& op) const { return op.hold.name; }
    const KeyName& operator()(const ForceOp& op) const { return op.name; }
    const KeyName& operator()(const InspectOp& op) const { return op.name; }
    const KeyName& operator()(const ListOp&) const { return None(); }
    const KeyName& operator()(const WatchOp&) const { return None(); }
    const KeyName& operator()(const UnwatchOp&) const { return None(); }
    const KeyName& operator()(const TellOp& op) const { return op.news.name; }
    static const KeyName& None() {
      static const KeyName kNone;
      return kNone;
    }
    const KeyName& operator()(const SubscribeOp& op) const { return op.name; }
    const KeyName& operator()(const UnsubscribeOp& op) const { return op.name; }
  };
  return std::visit(Visitor{}, request.op);
}

StoreFailure Refused(std::string why) { return {StoreFailureKind::kOther, false, std::move(why)}; }

}  // namespace

void RedisStore::Flush() {
  std::swap(queue_, flushing_);
  for (StoreRequest& request : flushing_) {
    if (!up_) {
      if (HasAnswer(request)) AnswerUnreachable(request.id, false);
      if (std::holds_alternative<TellOp>(request.op)) untold_ = true;
      continue;
    }
    std::string refusal = layout_.Refusal(NameOf(request));
    if (!refusal.empty() && !NameOf(request).ns.empty()) {
      if (HasAnswer(request)) Answer(request.id, Refused(std::move(refusal)));
    } else {
      Dispatch(std::move(request));
    }
  }
  flushing_.clear();
  SendBatch();
  if (!up_) return;
  connection_.Flush();
  subscriber_.Flush();
}

void RedisStore::Dispatch(StoreRequest request) {
  const uint64_t id = request.id;
  if (const auto* acquire = std::get_if<AcquireOp>(&request.op)) {
    if (acquire->lease > options_.max_lease) {
      return Answer(id, Refused("the lease is longer than the longest that this store allows"));
    }
    if (life_.empty()) life_ = acquire->place.daemon;
    if (acquire->enters) StandInLine();
    AddToBatch(Script::kApply, std::move(request));
  } else if (IsApplied(request)) {
    AddToBatch(Script::kApply, std::move(request));
  } else if (std::holds_alternative<RenewOp>(request.op)) {
    AddToBatch(Script::kRenew, std::move(request));
  } else if (std::holds_alternative<ForceOp>(request.op)) {
    SendBatch();
    auto command = std::make_unique<Command>(Script::kForce);
    command->requests.push_back(std::move(request));
    pipeline_.Send(std::move(command));
  } else if (const auto* inspect = std::get_if<InspectOp>(&request.op)) {
    SendBatch();
    auto command = std::make_unique<Command>(Script::kInspect);
    command->names.push_back(inspect->name);
    command->requests.push_back(std::move(request));
    SendLook(std::move(command));
  } else if (std::holds_alternative<ListOp>(request.op)) {
    SendList(std::move(request));
  } else if (const auto* subscribe = std::get_if<SubscribeOp>(&request.op)) {
    subscriber_.Subscribe(id, subscribe->name);
  } else if (const auto* unsubscribe = std::get_if<UnsubscribeOp>(&request.op)) {
    subscriber_.Unsubscribe(unsubscribe->name);
  } else if (std::holds_alternative<WatchOp>(request.op)) {
    BeginWatch(std::move(request));
  } else if (std::holds_alternative<UnwatchOp>(request.op)) {
    EndWatch();
  } else if (const auto* tell = std::get_if<TellOp>(&request.op)) {
    SendBatch();
    Publish(EncodeNews(tell->news, layout_));
  }
}

// Requests of one turn share calls, in their order.
void RedisStore::AddToBatch(Script script, StoreRequest request) {
  const bool renewal = script == Script::kRenew;
  const size_t limit = renewal ? limits::kRenewalsPerCall : kOpsPerCall;
  if (batch_ != nullptr) {
    const bool full = batch_->requests.size() >= limit;
    // A waiter's attempt goes with the release in front of it, so that nobody comes between them.
    const bool follows = full && !renewal && NameOf(batch_->requests.back()) == NameOf(request);
    if ((batch_->script == Script::kRenew) != renewal || (full && !follows)) SendBatch();
  }
  if (batch_ == nullptr) {
    batch_ = std::make_unique<Command>(script);
    batch_->requests.reserve(8);
  }
  batch_->requests.push_back(std::move(request));
}

void RedisStore::SendBatch() {
  if (batch_ != nullptr) pipeline_.Send(std::move(batch_));
}

void RedisStore::StandInLine() {
  const bool beats = clock_.Now() < stands_until_;
  stands_until_ = clock_.Now() + kStandsFor;
  if (!beats) beat_timer_.Start(limits::kDaemonBeat);
}

void RedisStore::OnBeatTimer() {
  if (clock_.Now() >= stands_until_) return;
  beat_timer_.Start(limits::kDaemonBeat);
  if (!up_) return;
  SendBatch();
  pipeline_.Send(std::make_unique<Command>(Script::kBeat));
  connection_.Flush();
}

void RedisStore::SendList(StoreRequest request) {
  const ListOp& op = std::get<ListOp>(request.op);
  if (!layout_.Refusal({op.ns, "x"}).empty()) return Answer(request.id, ListPage{});
  const std::string cursor = op.cursor.empty() ? "0" : op.cursor;
  const std::string pattern = layout_.ScanPattern(op.ns, op.prefix);
  const uint64_t id = request.id;
  const auto answer = [this, request = std::move(request)](const redisReply* reply) {
    if (reply == nullptr) return AnswerUnreachable(request.id, false);
    OnScanAnswer(request, *reply);
  };
  if (!connection_.Call({"SCAN", cursor, "MATCH", pattern, "COUNT", kScanCount}, answer)) {
    AnswerUnreachable(id, false);
  }
}

void RedisStore::Encode(const Command& command, absl::string_view head, absl::string_view script,
                        RespWriter* out) {
  const auto begin = [&](size_t args) {
    out->Begin(2 + args);
    out->Arg(head);
    out->Arg(script);
  };
  switch (command.script) {
    case Script::kApply:
    case Script::kGive:
      begin(ApplyArgs(command.requests.size()));
      return EncodeApply(command.requests, incarnation_, life_, layout_, &packer_, out);
    case Script::kBeat:
      begin(kBeatArgs);
      return EncodeBeat(incarnation_, life_, layout_, out);
    case Script::kForce:
      begin(kForceArgs);
      return EncodeForce(std::get<ForceOp>(command.requests[0].op), incarnation_, layout_, out);
    case Script::kWatch:
      begin(kWatchArgs);
      return EncodeWatch(incarnation_, layout_, out);
    case Script::kRenew: {
      std::vector<const RenewOp*> ops;
      ops.reserve(command.requests.size());
      for (const StoreRequest& r : command.requests) ops.push_back(&std::get<RenewOp>(r.op));
      begin(RenewArgs(ops.size()));
      return EncodeRenew(ops, incarnation_, layout_, out);
    }
    case Script::kInspect: {
      const size_t n = std::min(command.names.size(), kNamesPerLook);
      const bool list = std::holds_alternative<ListOp>(command.requests[0].op);
      begin(list ? 2 + n : 4 + n);
      out->Arg(static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) out->Arg(layout_.LockKey(command.names[i]));
      out->Arg(
          static_cast<int64_t>(list ? limits::kMaxHoldersInAnswer : limits::kMaxHoldersInReport));
      if (list) return;
      out->Arg(layout_.LineKey(command.names[0]));
      out->Arg(layout_.AliveKey());
      return;
    }
  }
}

}  // namespace holdfast::redis
