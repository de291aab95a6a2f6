// SPDX-License-Identifier: Apache-2.0
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/core.h"
#include "src/engine/times.h"

namespace holdfast::engine {
namespace {

absl::Status Forgotten() {
  return Fail(Reason::kCommandForgotten, "command_id",
              "this command was run before and its answer is forgotten; it was not run again");
}

absl::Status Mismatch() {
  return Fail(Reason::kCommandMismatch, "command_id",
              "command_id was used before for a different command; use a new one for each");
}

}  // namespace

uint64_t EngineCore::DigestOf(const Acquire& command) {
  // No duration of a valid command is negative, so this stands for "unset".
  constexpr absl::Duration kUnset = -absl::Nanoseconds(1);
  return absl::HashOf(command.owner, static_cast<int>(command.mode), command.limit,
                      static_cast<int>(command.reentry), command.lease.value_or(kUnset),
                      command.max_hold.value_or(kUnset), command.min_hold, command.feed);
}

uint64_t EngineCore::DigestOf(const AcquireAll& command) {
  uint64_t digest = command.keys.size();
  for (size_t i = 0; i < command.keys.size(); ++i) {
    digest = absl::HashOf(digest, command.keys[i].key, DigestOf(MemberCommand(command, i)));
  }
  return digest;
}

EngineCore::Answer EngineCore::CopyOf(const LoggedAnswer& logged, const Caller& caller) {
  if (const auto* release = std::get_if<ReleaseAnswer>(&logged.answer)) return *release;
  if (const auto* renewal = std::get_if<RenewAnswer>(&logged.answer)) {
    return AnswerFor(caller, *renewal, logged.sent);
  }
  if (const auto* all = std::get_if<AllGranted>(&logged.answer)) {
    AllGranted copy = *all;
    for (size_t i = 0; i < copy.grants.size(); ++i) {
      const Hold* hold = HoldById(logged.holds[i]);
      if (hold == nullptr || hold->lost) {
        return Fail(Reason::kLeaseExpired, "command_id",
                    absl::StrCat("this command was run before, and the hold it got of \"",
                                 copy.grants[i].name.key, "\" is over"));
      }
      const BootTime sent = logged.sent + copy.grants[i].waited;
      copy.grants[i].lease = hold->lease_end - sent;
      copy.grants[i] = AnswerFor(caller, std::move(copy.grants[i]), sent);
    }
    return copy;
  }
  const Hold* hold = HoldById(logged.hold);
  if (hold == nullptr || hold->lost) {
    return Fail(Reason::kLeaseExpired, "command_id",
                "this command was run before, and the hold it got is over");
  }
  Grant grant = std::get<Grant>(logged.answer);
  grant.lease = hold->lease_end - logged.sent;
  return AnswerFor(caller, std::move(grant), logged.sent);
}

bool EngineCore::AnsweredBefore(Acquire& command, const std::string& key,
                                std::unique_ptr<Waiter>& waiter) {
  const ReplyTo reply_to = command.head.reply_to;
  const CommandLog::Found found = log_.Find(key, DigestOf(command), now_);
  const bool bare = command.session_id.empty();
  if (std::holds_alternative<CommandLog::Mismatch>(found)) {
    Answer1(reply_to, Mismatch());
  } else if (const auto* under_way = std::get_if<UnderWay>(&found)) {
    Waiter& first = *WaiterById(under_way->waiter);
    first.callers.push_back(Caller{reply_to, command.head.received});
    Book(first, reply_to);
  } else if (const auto* logged = std::get_if<LoggedAnswer>(&found)) {
    if (!bare) {
      Answer1(reply_to, CopyOf(*logged, Caller{reply_to, command.head.received}));
    } else {
      // Only the store knows whether a bare lease still lives.
      command.owner = std::get<Grant>(logged->answer).owner;
      waiter->replay_only = true;
      return false;
    }
  } else if (std::holds_alternative<CommandLog::Forgotten>(found)) {
    if (!bare || command.owner.empty()) {
      Answer1(reply_to, Forgotten());
    } else {
      waiter->replay_only = true;
      waiter->known_forgotten = true;
      return false;
    }
  } else {
    return false;
  }
  return true;
}

bool EngineCore::AnsweredBefore(AcquireAll& command, const std::string& key, AcquireSet& set) {
  const Caller caller{command.head.reply_to, command.head.received};
  const CommandLog::Found found = log_.Find(key, DigestOf(command), now_);
  const bool bare = command.session_id.empty();
  if (std::holds_alternative<CommandLog::New>(found)) return false;
  if (std::holds_alternative<CommandLog::Mismatch>(found)) {
    Answer1(caller.to, Mismatch());
  } else if (const auto* under_way = std::get_if<UnderWay>(&found)) {
    BookSet(*SetById(under_way->set), caller);
  } else if (const auto* logged = std::get_if<LoggedAnswer>(&found)) {
    if (!bare) {
      Answer1(caller.to, CopyOf(*logged, caller));
      return true;
    }
    command.owner = std::get<AllGranted>(logged->answer).grants[0].owner;
    set.replay_only = true;
    return false;
  } else if (!bare || command.owner.empty()) {
    Answer1(caller.to, Forgotten());
  } else {
    set.replay_only = set.known_forgotten = true;
    return false;
  }
  return true;
}

bool EngineCore::AnsweredBefore(const Release& command, const std::string& key) {
  const ReplyTo reply_to = command.head.reply_to;
  const CommandLog::Found found = log_.Find(key, 0, now_);
  if (std::holds_alternative<CommandLog::New>(found)) return false;
  if (const auto* under_way = std::get_if<UnderWay>(&found)) {
    if (!store_up_) {
      Answer1(reply_to, StoreUnreachable());
    } else {
      under_way->op->callers.push_back(Caller{reply_to, command.head.received});
    }
  } else if (const auto* logged = std::get_if<LoggedAnswer>(&found)) {
    Answer1(reply_to, CopyOf(*logged, Caller{reply_to, command.head.received}));
  } else {
    Answer1(reply_to,
            std::holds_alternative<CommandLog::Mismatch>(found) ? Mismatch() : Forgotten());
  }
  return true;
}

bool EngineCore::AnsweredBefore(const Renew& command, const std::string& key) {
  const ReplyTo reply_to = command.head.reply_to;
  const CommandLog::Found found = log_.Find(key, 1, now_);
  if (std::holds_alternative<CommandLog::New>(found)) return false;
  if (const auto* under_way = std::get_if<UnderWay>(&found)) {
    pending_.at(under_way->renewal).callers.push_back(Caller{reply_to, command.head.received});
  } else if (const auto* logged = std::get_if<LoggedAnswer>(&found)) {
    Answer1(reply_to, CopyOf(*logged, Caller{reply_to, command.head.received}));
  } else {
    Answer1(reply_to,
            std::holds_alternative<CommandLog::Mismatch>(found) ? Mismatch() : Forgotten());
  }
  return true;
}

}  // namespace holdfast::engine
