// SPDX-License-Identifier: Apache-2.0
//
// The part of the Redis store that sends.
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/store/redis/redis_store_impl.h"

namespace holdfast::redis {
namespace {

// Keys that one step of a listing looks at, and that one script call reports on.
constexpr absl::string_view kScanCount = "200";
constexpr size_t kNamesPerLook = 128;

const KeyName& NameOf(const StoreRequest& request) {
  struct Visitor {
    const KeyName& operator()(const AcquireOp& op) const { return op.hold.name; }
    const KeyName& operator()(const ReleaseOp& op) const { return op.hold.name; }
    const KeyName& operator()(const RenewOp& op) const { return op.hold.name; }
    const KeyName& operator()(const InspectOp& op) const { return op.name; }
    const KeyName& operator()(const ListOp&) const {
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
  std::deque<StoreRequest> batch;
  batch.swap(queue_);
  std::unique_ptr<Command> renewals;
  const auto send_renewals = [&] {
    if (renewals != nullptr) pipeline_.Send(std::move(renewals));
  };
  for (StoreRequest& request : batch) {
    const bool renewal = std::holds_alternative<RenewOp>(request.op);
    if (!renewal || !up_) send_renewals();
    if (!up_) {
      if (!std::holds_alternative<UnsubscribeOp>(request.op)) AnswerUnreachable(request.id, false);
      continue;
    }
    std::string refusal = layout_.Refusal(NameOf(request));
    if (!refusal.empty() && !std::holds_alternative<ListOp>(request.op)) {
      Answer(request.id, Refused(std::move(refusal)));
    } else if (renewal) {
      if (renewals == nullptr) renewals = std::make_unique<Command>(Script::kRenew);
      renewals->requests.push_back(std::move(request));
      if (renewals->requests.size() == limits::kRenewalsPerCall) send_renewals();
    } else {
      Dispatch(std::move(request));
    }
  }
  send_renewals();
  if (!up_) return;
  connection_.Flush();
  subscriber_.Flush();
}

void RedisStore::Dispatch(StoreRequest request) {
  const uint64_t id = request.id;
  if (const auto* acquire = std::get_if<AcquireOp>(&request.op)) {
    if (acquire->mode != Mode::kExclusive) {
      return Answer(id, Refused("this store does not keep shared holds or permits"));
    }
    if (acquire->lease > options_.max_lease) {
      return Answer(id, Refused("the lease is longer than the longest that this store allows"));
    }
    SendScript(Script::kAcquire, std::move(request));
  } else if (std::holds_alternative<ReleaseOp>(request.op)) {
    SendScript(Script::kRelease, std::move(request));
  } else if (const auto* inspect = std::get_if<InspectOp>(&request.op)) {
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
  }
}

void RedisStore::SendScript(Script script, StoreRequest request) {
  auto command = std::make_unique<Command>(script);
  command->requests.push_back(std::move(request));
  pipeline_.Send(std::move(command));
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
    case Script::kAcquire:
      begin(kAcquireArgs);
      return EncodeAcquire(std::get<AcquireOp>(command.requests[0].op), incarnation_, layout_, out);
    case Script::kRelease:
      begin(kReleaseArgs);
      return EncodeRelease(std::get<ReleaseOp>(command.requests[0].op), incarnation_, layout_, out);
    case Script::kRenew: {
      std::vector<const RenewOp*> ops;
      ops.reserve(command.requests.size());
      for (const StoreRequest& r : command.requests) ops.push_back(&std::get<RenewOp>(r.op));
      begin(RenewArgs(ops.size()));
      return EncodeRenew(ops, incarnation_, layout_, out);
    }
    case Script::kInspect: {
      const size_t n = std::min(command.names.size(), kNamesPerLook);
      begin(1 + n);
      out->Arg(static_cast<int64_t>(n));
      for (size_t i = 0; i < n; ++i) out->Arg(layout_.LockKey(command.names[i]));
      return;
    }
  }
}

}  // namespace holdfast::redis
