// SPDX-License-Identifier: Apache-2.0
#include "src/engine/validate.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "src/base/durations.h"
#include "src/base/status.h"
#include "src/engine/acquire_all.h"

namespace holdfast::engine {
namespace {

// The first failure, or OK.
absl::Status FirstOf(std::initializer_list<absl::Status> checks) {
  for (const absl::Status& check : checks) {
    if (!check.ok()) return check;
  }
  return absl::OkStatus();
}

absl::Status CheckRange(absl::Duration value, absl::string_view field, absl::Duration min,
                        absl::Duration max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Fail(Reason::kInvalidField, field,
              absl::StrCat(field, " must be from ", DurationText(min), " to ", DurationText(max)));
}

// 0 stands for "none".
absl::Status CheckZeroOrRange(absl::Duration value, absl::string_view field, absl::Duration min,
                              absl::Duration max) {
  if (value == absl::ZeroDuration() || (value >= min && value <= max)) return absl::OkStatus();
  return Fail(Reason::kInvalidField, field,
              absl::StrCat(field, " must be 0 (none) or from ", DurationText(min), " to ",
                           DurationText(max)));
}

absl::Status CheckLease(const std::optional<absl::Duration>& lease, const EngineOptions& options) {
  if (!lease.has_value()) return absl::OkStatus();
  return CheckRange(*lease, "lease", limits::kMinLease, options.max_lease);
}

absl::Status CheckName(const KeyName& name) {
  return FirstOf({CheckNamespace(name.ns), CheckKey(name.key)});
}

absl::Status CheckRequiredId(const std::string& id, absl::string_view field, size_t max_bytes) {
  if (id.empty()) return Fail(Reason::kInvalidField, field, absl::StrCat(field, " must be set"));
  return CheckId(id, field, max_bytes);
}

absl::Status CheckClaim(const KeyName& name, const std::string& owner, const std::string& hold_id,
                        const std::string& command_id) {
  return FirstOf({CheckName(name), CheckOwner(owner), ValidateHoldId(hold_id),
                  CheckId(command_id, "command_id", limits::kMaxCommandIdBytes)});
}

absl::Status CheckMode(const Acquire& command) {
  if (command.mode != Mode::kPermit) {
    if (command.limit == 0) return absl::OkStatus();
    return Fail(Reason::kInvalidField, "limit", "limit must be 0 unless mode is PERMIT");
  }
  if (command.limit >= 1 && command.limit <= limits::kMaxPermitLimit) return absl::OkStatus();
  return Fail(Reason::kInvalidField, "limit",
              absl::StrCat("limit must be from 1 to ", limits::kMaxPermitLimit, " for a PERMIT"));
}

absl::Status CheckFeed(const Acquire& command) {
  if (command.feed != absl::ZeroDuration() && command.session_id.empty()) {
    return Fail(Reason::kInvalidField, "feed",
                "feed must be 0 for a bare lease: it needs a session");
  }
  return CheckZeroOrRange(command.feed, "feed", limits::kMinFeed, limits::kMaxFeed);
}

absl::Status CheckMinHold(const Acquire& command) {
  const absl::Duration max = command.max_hold.value_or(absl::ZeroDuration());
  if (max > absl::ZeroDuration() && command.min_hold > max) {
    return Fail(Reason::kInvalidField, "min_hold", "min_hold must not be longer than max_hold");
  }
  return CheckRange(command.min_hold, "min_hold", absl::ZeroDuration(), limits::kMaxMinHold);
}

}  // namespace

absl::Status Validate(const OpenSession& command, const EngineOptions& options) {
  if (command.resume) {
    return Fail(Reason::kUnsupported, "resume", "taking a session up again is not in this version");
  }
  if (command.reconnect_grace != absl::ZeroDuration()) {
    return Fail(Reason::kUnsupported, "reconnect_grace",
                "sessions that outlive their stream are not in this version; leave it unset");
  }
  absl::Status ttl = absl::OkStatus();
  if (command.ttl.has_value()) {
    ttl = CheckZeroOrRange(*command.ttl, "ttl", limits::kMinTtl, limits::kMaxTtl);
  }
  return FirstOf({CheckText(command.client_name, "client_name", limits::kMaxClientNameBytes), ttl,
                  CheckLease(command.lease, options)});
}

absl::Status Validate(const Acquire& command, const EngineOptions& options) {
  absl::Status owner = command.owner.empty() ? absl::OkStatus() : CheckOwner(command.owner);
  absl::Status max_hold = absl::OkStatus();
  if (command.max_hold.has_value()) {
    max_hold =
        CheckZeroOrRange(*command.max_hold, "max_hold", limits::kMinLease, limits::kMaxMaxHold);
  }
  return FirstOf({CheckName(command.name), owner,
                  CheckId(command.session_id, "session_id", limits::kMaxSessionIdBytes),
                  CheckLease(command.lease, options),
                  CheckRange(command.wait, "wait", absl::ZeroDuration(), limits::kMaxWait),
                  max_hold, CheckMinHold(command), CheckFeed(command),
                  CheckText(command.note, "note", limits::kMaxNoteBytes),
                  CheckText(command.traceparent, "traceparent", limits::kMaxTraceparentBytes),
                  CheckId(command.command_id, "command_id", limits::kMaxCommandIdBytes),
                  CheckMode(command)});
}

absl::Status Validate(const AcquireAll& command, const EngineOptions& options) {
  if (command.keys.empty() || command.keys.size() > limits::kMaxKeysPerAcquireAll) {
    return Fail(Reason::kInvalidField, "keys",
                absl::StrCat("keys must be 1 to ", limits::kMaxKeysPerAcquireAll));
  }
  absl::flat_hash_map<absl::string_view, size_t> seen;
  for (size_t i = 0; i < command.keys.size(); ++i) {
    const absl::Status valid = Validate(MemberCommand(command, i), options);
    if (!valid.ok()) return OfKey(valid, i);
    const auto [first, is_new] = seen.try_emplace(command.keys[i].key, i);
    if (!is_new) {
      return Fail(Reason::kInvalidField, absl::StrCat("keys[", i, "].key"),
                  absl::StrCat("keys must be different, and keys[", i, "] is the same as keys[",
                               first->second, "]"));
    }
  }
  return absl::OkStatus();
}

absl::Status OfKey(const absl::Status& status, size_t asked) {
  const std::string field = FieldOf(status);
  if (field == "owner" && status.code() == absl::StatusCode::kFailedPrecondition) {
    return Fail(ReasonOf(status), field, absl::StrCat("keys[", asked, "]: ", status.message()));
  }
  if (field != "key" && field != "mode" && field != "limit") return status;
  const std::string of_key = absl::StrCat("keys[", asked, "].", field);
  return Fail(ReasonOf(status), of_key, absl::StrCat(of_key, ": ", status.message()));
}

absl::Status Validate(const Renew& command, const EngineOptions& options) {
  return FirstOf({CheckClaim(command.name, command.owner, command.hold_id, command.command_id),
                  CheckLease(command.lease, options)});
}

absl::Status Validate(const Release& command) {
  return CheckClaim(command.name, command.owner, command.hold_id, command.command_id);
}

absl::Status Validate(const Inspect& command) { return CheckName(command.name); }

absl::Status Validate(const List& command) {
  return FirstOf({CheckNamespace(command.ns), CheckPrefix(command.prefix)});
}

absl::Status Validate(const Watch& command) {
  return FirstOf({CheckNamespace(command.ns), CheckPrefix(command.prefix)});
}

absl::Status Validate(const CloseSession& command) {
  return CheckRequiredId(command.session_id, "session_id", limits::kMaxSessionIdBytes);
}

absl::Status Validate(const ForceRelease& command) {
  return FirstOf(
      {CheckName(command.name), CheckId(command.hold_id, "hold_id", limits::kMaxHoldIdBytes)});
}

absl::Status ValidateHoldId(const std::string& hold_id) {
  return CheckRequiredId(hold_id, "hold_id", limits::kMaxHoldIdBytes);
}

}  // namespace holdfast::engine
