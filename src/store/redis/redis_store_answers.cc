// SPDX-License-Identifier: Apache-2.0
//
// The part of the Redis store that understands what comes back.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/store/redis/redis_store_impl.h"

namespace holdfast::redis {

Pipeline::Verdict RedisStore::OnAnswer(std::unique_ptr<Command> command, const redisReply& reply) {
  if (IsError(&reply)) return OnErrorAnswer(std::move(command), reply);
  if (command->script == Script::kInspect) return OnLookAnswer(std::move(command), reply);
  if (command->script == Script::kRenew) return OnRenewAnswer(std::move(command), reply);
  if (command->script == Script::kBeat) return OnBeatAnswer(std::move(command), reply);
  if (command->script == Script::kWatch) return OnWatchAnswer(std::move(command), reply);
  if (command->script == Script::kForce) return OnForceAnswer(std::move(command), reply);
  return OnApplyAnswer(std::move(command), reply);
}

Pipeline::Verdict RedisStore::OnBeatAnswer(std::unique_ptr<Command> /*command*/,
                                           const redisReply& reply) {
  const Outcome outcome = DecodeOutcome(reply, 1);
  if (outcome.kind != Outcome::Kind::kNewIncarnation) return {};
  LearnGrace(outcome.grace, "the store says so");
  return {nullptr, true};  // the next one comes soon
}

Pipeline::Verdict RedisStore::OnForceAnswer(std::unique_ptr<Command> command,
                                            const redisReply& reply) {
  const Outcome outcome = DecodeOutcome(reply, 1);
  if (outcome.kind == Outcome::Kind::kNewIncarnation) {
    LearnGrace(outcome.grace, "the store says so");
    return {std::move(command), true};
  }
  Answer(command->requests[0].id, DecodeForce(reply));
  return {};
}

Pipeline::Verdict RedisStore::OnApplyAnswer(std::unique_ptr<Command> command,
                                            const redisReply& reply) {
  std::vector<StoreRequest>& requests = command->requests;
  const Outcome outcome = DecodeOutcome(reply, requests.size());
  WatchClock(outcome.now_ms, command->sent);
  if (outcome.kind == Outcome::Kind::kMalformed) {
    for (const StoreRequest& request : requests) Answer(request.id, Unexpected(reply));
    return {};
  }
  if (outcome.kind == Outcome::Kind::kNewIncarnation) {
    LearnGrace(outcome.grace, "the store says so");
    // Nothing is granted in grace, so acquires have their answer; releases are still to be done.
    const auto done = std::remove_if(requests.begin(), requests.end(), [&](StoreRequest& request) {
      const bool acquire = std::holds_alternative<AcquireOp>(request.op);
      if (acquire) Answer(request.id, InGrace{outcome.grace});
      return acquire;
    });
    requests.erase(done, requests.end());
    if (requests.empty()) return {nullptr, true};
    return {std::move(command), true};
  }
  NoteAudience(outcome.watched);
  std::unique_ptr<Command> when_full;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto* acquire = std::get_if<AcquireOp>(&requests[i].op);
    const redisReply& row = *outcome.rows[i];
    Result result = acquire != nullptr ? DecodeAcquire(row, *acquire) : DecodeRelease(row);
    const auto* failure = std::get_if<StoreFailure>(&result);
    if (acquire == nullptr && command->script != Script::kGive && failure != nullptr &&
        failure->kind == StoreFailureKind::kOutOfMemory) {
      if (when_full == nullptr) when_full = std::make_unique<Command>(Script::kGive);
      when_full->requests.push_back(std::move(requests[i]));
      continue;
    }
    if (const auto* grace = std::get_if<InGrace>(&result)) {
      LearnGrace(grace->remaining, "the store says so");
    }
    Answer(requests[i].id, std::move(result));
  }
  if (when_full != nullptr) pipeline_.Send(std::move(when_full));
  return {};
}

Pipeline::Verdict RedisStore::OnRenewAnswer(std::unique_ptr<Command> command,
                                            const redisReply& reply) {
  const size_t ops = command->requests.size();
  const Outcome outcome = DecodeRenewOutcome(reply, ops);
  WatchClock(outcome.now_ms, command->sent);
  if (outcome.kind == Outcome::Kind::kNewIncarnation) {
    LearnGrace(outcome.grace, "the store says so");
    return {std::move(command), true};
  }
  const bool whole = outcome.kind == Outcome::Kind::kDone;
  if (whole) NoteAudience(outcome.watched);
  for (size_t i = 0; i < ops; ++i) {
    const auto row = [&](size_t j) -> const redisReply& { return *outcome.rows[3 * i + j]; };
    Answer(command->requests[i].id,
           whole ? DecodeRenewal(row(0), row(1), row(2)) : Result(Unexpected(reply)));
  }
  return {};
}

Pipeline::Verdict RedisStore::OnErrorAnswer(std::unique_ptr<Command> command,
                                            const redisReply& reply) {
  const std::string message(TextOf(&reply));
  StoreFailure failure{StoreFailureKind::kOther, false, message};
  switch (KindOfError(message)) {
    case ErrorKind::kWrongType:
      failure.kind = StoreFailureKind::kWrongType;
      break;
    case ErrorKind::kOutOfMemory:
      failure.kind = StoreFailureKind::kOutOfMemory;
      break;
    case ErrorKind::kNoScript:
    case ErrorKind::kUnfit:
      failure.kind = StoreFailureKind::kUnreachable;
      break;
    case ErrorKind::kOther:
      failure.maybe_applied = true;
      break;
  }
  const bool unfit = failure.kind == StoreFailureKind::kUnreachable;
  for (const StoreRequest& request : command->requests) Answer(request.id, failure);
  if (failure.maybe_applied) {
    untold_ = true;  // what a script did before it failed
    TellOfGaps();
  }
  if (unfit) connection_.Break(message);
  return {};
}

void RedisStore::OnScanAnswer(StoreRequest request, const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) {
    return Answer(request.id, StoreFailure{StoreFailureKind::kOther, false,
                                           absl::StrCat("SCAN: ", TextOf(&reply))});
  }
  const ListOp& op = std::get<ListOp>(request.op);
  auto command = std::make_unique<Command>(Script::kInspect);
  const std::string cursor(TextOf(reply.element[0]));
  if (cursor != "0") command->page.next_cursor = cursor;
  for (size_t i = 0; i < reply.element[1]->elements; ++i) {
    auto name = layout_.ParseLockKey(op.ns, op.prefix, TextOf(reply.element[1]->element[i]));
    if (name.has_value()) command->names.push_back(*std::move(name));
  }
  // One page names a key once; SCAN may do so twice.
  std::sort(command->names.begin(), command->names.end());
  command->names.erase(std::unique(command->names.begin(), command->names.end()),
                       command->names.end());
  if (command->names.empty()) return Answer(request.id, std::move(command->page));
  command->requests.push_back(std::move(request));
  SendLook(std::move(command));
}

Pipeline::Verdict RedisStore::OnLookAnswer(std::unique_ptr<Command> command,
                                           const redisReply& reply) {
  const uint64_t id = command->requests[0].id;
  const size_t looked = reply.type == REDIS_REPLY_ARRAY ? reply.elements : 0;
  if (looked == 0 || looked > command->names.size()) {
    Answer(id, Unexpected(reply));
    return {};
  }
  const bool list = std::holds_alternative<ListOp>(command->requests[0].op);
  for (size_t i = 0; i < looked; ++i) {
    std::optional<KeyReport> report = DecodeReport(*reply.element[i], command->names[i]);
    if (!list) {
      Answer(id, report.has_value() ? Result(*std::move(report)) : Result(NoLock()));
      return {};
    }
    if (report.has_value() && !report->free()) command->page.keys.push_back(*std::move(report));
  }
  command->names.erase(command->names.begin(),
                       command->names.begin() + static_cast<std::ptrdiff_t>(looked));
  if (command->names.empty()) {
    Answer(id, std::move(command->page));
  } else {
    SendLook(std::move(command));
  }
  return {};
}

void RedisStore::OnLost(std::unique_ptr<Command> command, bool maybe_applied) {
  const bool writes = command->script != Script::kInspect;
  for (const StoreRequest& request : command->requests) {
    AnswerUnreachable(request.id, maybe_applied && writes);
  }
}

}  // namespace holdfast::redis
