// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/codec.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/limits.h"

namespace holdfast::redis {
namespace {

// The codes that the scripts answer with.
enum Code : int64_t {
  kFreshlyGranted = 1,
  kGranted = 2,
  kBusy = 3,
  kReentryRefused = 4,
  kReleased = 5,
  kHoldGone = 6,
  kRenewed = 7,
  kNewIncarnation = 8,
  kInGrace = 9,
  kNoLock = 10,
  kHoldIdInUse = 11,
  kTooManyCounts = 13,
  kModeRefused = 16,
  kTooManyHolds = 17,
  kFreshlyGrantedBesideOthers = 18,
  kOutOfMemory = 14,
  kForced = 15,
  kWatched = 19,  // where 1 stands else
};

int64_t Millis(absl::Duration d) {
  return absl::ToInt64Milliseconds(absl::Ceil(d, absl::Milliseconds(1)));
}

// Infinite is 0 to the scripts.
int64_t LimitMillis(absl::Duration d) {
  return d == absl::InfiniteDuration() ? 0 : std::max<int64_t>(1, Millis(d));
}

// -1 is infinite from the scripts.
absl::Duration FromMillis(int64_t ms) {
  return ms < 0 ? absl::InfiniteDuration() : absl::Milliseconds(ms);
}

int64_t IntAt(const redisReply& reply, size_t i) {
  return reply.type == REDIS_REPLY_ARRAY && i < reply.elements ? reply.element[i]->integer : 0;
}

std::string TextAt(const redisReply& reply, size_t i) {
  if (reply.type != REDIS_REPLY_ARRAY || i >= reply.elements) return "";
  const redisReply& item = *reply.element[i];
  return item.str == nullptr ? "" : std::string(item.str, item.len);
}

int64_t CodeOf(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER ? reply.integer : IntAt(reply, 0);
}

uint32_t Count(int64_t n) { return static_cast<uint32_t>(std::max<int64_t>(0, n)); }

Mode ModeOf(int64_t number) {
  return number >= 1 && number <= 3 ? static_cast<Mode>(number) : Mode::kExclusive;
}

std::vector<HolderState> DecodeHolders(const redisReply& rows, Mode mode) {
  std::vector<HolderState> holders;
  for (size_t i = 0; rows.type == REDIS_REPLY_ARRAY && i < rows.elements; ++i) {
    const redisReply& row = *rows.element[i];
    holders.push_back({TextAt(row, 0), TextAt(row, 1), TextAt(row, 2), mode, Count(IntAt(row, 3)),
                       TextAt(row, 4), FromMillis(IntAt(row, 5)), FromMillis(IntAt(row, 6)),
                       IntAt(row, 7) != 0, IntAt(row, 8)});
  }
  return holders;
}

// Places as the line has them: the daemon, a byte 31, and a number.
std::vector<Place> DecodeLine(const redisReply& places) {
  std::vector<Place> line;
  for (size_t i = 0; places.type == REDIS_REPLY_ARRAY && i < places.elements; ++i) {
    const std::string text = TextAt(places, i);
    const size_t end = text.find('\x1f');
    Place place;
    if (end == std::string::npos || !absl::SimpleAtoi(text.substr(end + 1), &place.number))
      continue;
    place.daemon = text.substr(0, end);
    line.push_back(std::move(place));
  }
  return line;
}

HoldGone DecodeGone(int64_t held, int64_t owner_count) { return {held != 0, Count(owner_count)}; }

template <typename Writer>
void EncodeHold(const HoldRef& hold, Writer* out) {
  out->Arg(hold.owner);
  out->Arg(hold.hold_id);
  out->Arg(absl::StrCat(hold.epoch, "\x1f", hold.session));
}

Granted FreshGrant(const AcquireOp& op, int64_t token) {
  const absl::Duration max_hold =
      FromMillis(LimitMillis(op.max_hold) == 0 ? -1 : LimitMillis(op.max_hold));
  return {op.hold.hold_id, token, 1, 1, std::min(absl::Milliseconds(Millis(op.lease)), max_hold),
          max_hold,        false};
}

StoreFailure DecodeFailure(const redisReply& row) {
  switch (CodeOf(row)) {
    case kNoLock:
      return NoLock();
    case kOutOfMemory:
      return {StoreFailureKind::kOutOfMemory, false, "Redis is out of memory"};
    default:
      return Unexpected(row);
  }
}

const KeyName& NameOf(const StoreRequest& request) {
  if (const auto* acquire = std::get_if<AcquireOp>(&request.op)) return acquire->hold.name;
  if (const auto* pass_on = std::get_if<PassOnOp>(&request.op)) return pass_on->name;
  return std::get<ReleaseOp>(request.op).hold.name;
}

std::string FlagsOf(const AcquireOp& op) {
  std::string flags;
  if (op.refuse_reentry) flags += 'r';
  if (op.only_reentry) flags += 'o';
  if (op.replay_only) flags += 'p';
  if (op.will_wait) flags += 'w';
  if (op.enters) flags += 'e';
  if (op.others_wait) flags += 't';
  if (op.leaves) flags += op.stays ? 'Z' : 'L';
  if (op.place.number > 0) absl::StrAppend(&flags, "F", op.place.number);
  if (op.untold) flags += 'q';
  if (op.mode == Mode::kShared) flags += 'S';
  if (op.mode == Mode::kPermit) absl::StrAppend(&flags, "M", op.limit);
  if (op.release_delay > absl::ZeroDuration()) {
    absl::StrAppend(&flags, "D", Millis(op.release_delay));
  }
  return flags;
}

void EncodeAcquire(const AcquireOp& op, StringPacker* out) {
  out->Arg("a");
  EncodeHold(op.hold, out);
  out->Arg(Millis(op.lease));
  out->Arg(LimitMillis(op.max_hold));
  out->Arg(Millis(op.min_hold));
  out->Arg(op.op_id);
  out->Arg(op.note);
  out->Arg(FlagsOf(op));
}

void EncodeRelease(const ReleaseOp& op, StringPacker* out) {
  out->Arg(op.kind == ReleaseKind::kOne ? "o" : op.kind == ReleaseKind::kAll ? "l" : "u");
  EncodeHold(op.hold, out);
  out->Arg(op.op_id);
}

void EncodePassOn(const PassOnOp& op, StringPacker* out) {
  out->Arg("n");
  out->Arg(absl::StrCat(op.place.number));
  switch (op.kind) {
    case PassOnOp::Kind::kWriterGone:
      out->Arg("x");
      break;
    case PassOnOp::Kind::kLeave:
      out->Arg("e");
      break;
    case PassOnOp::Kind::kLeaveAll:
      out->Arg("a");
      break;
    case PassOnOp::Kind::kUnclaimed:
      out->Arg("u");
      break;
  }
  out->Arg(op.place.daemon);
  out->Arg("");
}

}  // namespace

bool IsApplied(const StoreRequest& request) {
  return std::holds_alternative<AcquireOp>(request.op) ||
         std::holds_alternative<ReleaseOp>(request.op) ||
         std::holds_alternative<PassOnOp>(request.op);
}

void EncodeApply(absl::Span<const StoreRequest> requests, const std::string& incarnation,
                 const std::string& life, const KeyLayout& layout, StringPacker* packer,
                 RespWriter* out) {
  out->Arg(static_cast<int64_t>(1 + requests.size()));
  out->Arg(layout.state_key());
  for (const StoreRequest& request : requests) out->Arg(layout.LockKey(NameOf(request)));
  out->Arg(incarnation);
  packer->Begin();
  for (const StoreRequest& request : requests) {
    if (const auto* acquire = std::get_if<AcquireOp>(&request.op)) {
      EncodeAcquire(*acquire, packer);
    } else if (const auto* pass_on = std::get_if<PassOnOp>(&request.op)) {
      EncodePassOn(*pass_on, packer);
    } else {
      EncodeRelease(std::get<ReleaseOp>(request.op), packer);
    }
  }
  out->Arg(packer->Packed());
  out->Arg(life);
}

void EncodeBeat(const std::string& incarnation, const std::string& life, const KeyLayout& layout,
                RespWriter* out) {
  out->Arg(int64_t{1});
  out->Arg(layout.state_key());
  out->Arg(incarnation);
  out->Arg(life);
}

void EncodeForce(const ForceOp& op, const std::string& incarnation, const KeyLayout& layout,
                 RespWriter* out) {
  out->Arg(int64_t{2});
  out->Arg(layout.state_key());
  out->Arg(layout.LockKey(op.name));
  out->Arg(incarnation);
  out->Arg(op.hold_id);
  out->Arg(op.immediate ? "1" : "");
}

void EncodeWatch(const std::string& incarnation, const KeyLayout& layout, RespWriter* out) {
  out->Arg(int64_t{1});
  out->Arg(layout.state_key());
  out->Arg(incarnation);
  out->Arg(Millis(limits::kWatchSpan));
}

void EncodeRenew(absl::Span<const RenewOp* const> ops, const std::string& incarnation,
                 const KeyLayout& layout, RespWriter* out) {
  out->Arg(static_cast<int64_t>(1 + ops.size()));
  out->Arg(layout.state_key());
  for (const RenewOp* op : ops) out->Arg(layout.LockKey(op->hold.name));
  out->Arg(incarnation);
  for (const RenewOp* op : ops) {
    EncodeHold(op->hold, out);
    if (op->mode == Mode::kExclusive) {
      out->Arg(Millis(op->lease));
    } else {
      out->Arg(absl::StrCat("m", Millis(op->lease)));
    }
  }
}

Outcome DecodeOutcome(const redisReply& reply, size_t requests) {
  Outcome outcome;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 3) return outcome;
  outcome.now_ms = IntAt(reply, 1);
  if (IntAt(reply, 0) == kNewIncarnation) {
    outcome.kind = Outcome::Kind::kNewIncarnation;
    outcome.grace = FromMillis(IntAt(reply, 2));
  } else if (reply.elements == 2 + requests) {
    outcome.kind = Outcome::Kind::kDone;
    outcome.watched = IntAt(reply, 0) == kWatched;
    outcome.rows = absl::MakeConstSpan(reply.element + 2, requests);
  }
  return outcome;
}

bool SaysYes(const redisReply& row) { return row.type == REDIS_REPLY_INTEGER && row.integer != 0; }

Result DecodeAcquire(const redisReply& row, const AcquireOp& op) {
  if (row.type == REDIS_REPLY_INTEGER) return FreshGrant(op, row.integer);
  switch (CodeOf(row)) {
    case kFreshlyGrantedBesideOthers: {
      Granted granted = FreshGrant(op, IntAt(row, 1));
      granted.others_first = true;
      return granted;
    }
    case kGranted:
      return Granted{TextAt(row, 2),
                     IntAt(row, 1),
                     Count(IntAt(row, 3)),
                     Count(IntAt(row, 4)),
                     FromMillis(IntAt(row, 5)),
                     FromMillis(IntAt(row, 6)),
                     IntAt(row, 7) != 0,
                     ModeOf(IntAt(row, 8)),
                     IntAt(row, 9) != 0,
                     IntAt(row, 10) != 0};
    case kBusy: {
      Busy busy{{}, FromMillis(IntAt(row, 1))};
      if (row.elements > 2) busy.holders = DecodeHolders(*row.element[2], ModeOf(IntAt(row, 3)));
      busy.handed_to = TextAt(row, 4);
      return busy;
    }
    case kReentryRefused:
      return ReentryRefused{};
    case kHoldGone:
      return DecodeGone(IntAt(row, 1), IntAt(row, 2));
    case kInGrace:
      return InGrace{FromMillis(IntAt(row, 1))};
    case kHoldIdInUse:
      return StoreFailure{StoreFailureKind::kOther, false, "the hold id is in use"};
    case kTooManyCounts:
      return StoreFailure{StoreFailureKind::kLimit, false, "the owner holds the key too often"};
    case kTooManyHolds:
      return StoreFailure{StoreFailureKind::kLimit, false, "the key has as many holds as it may"};
    case kModeRefused:
      return ModeRefused{ModeOf(IntAt(row, 1)), Count(IntAt(row, 2))};
    default:
      return DecodeFailure(row);
  }
}

Result DecodeRelease(const redisReply& row) {
  switch (CodeOf(row)) {
    case kReleased:
      if (row.type == REDIS_REPLY_INTEGER) return Released{0, 0, true, absl::ZeroDuration()};
      return Released{Count(IntAt(row, 1)), Count(IntAt(row, 2)), IntAt(row, 3) != 0,
                      FromMillis(IntAt(row, 4)), TextAt(row, 5)};
    case kHoldGone:
      return DecodeGone(IntAt(row, 1), IntAt(row, 2));
    default:
      return DecodeFailure(row);
  }
}

Result DecodeForce(const redisReply& reply) {
  if (CodeOf(reply) == kNoLock) return NoLock();
  if (CodeOf(reply) != kForced || reply.elements < 5) return Unexpected(reply);
  return Forced{DecodeHolders(*reply.element[3], ModeOf(IntAt(reply, 4))), Count(IntAt(reply, 1)),
                FromMillis(IntAt(reply, 2))};
}

Outcome DecodeRenewOutcome(const redisReply& reply, size_t ops) {
  Outcome outcome;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 3) return outcome;
  if (reply.elements == 3 && IntAt(reply, 0) == kNewIncarnation) return DecodeOutcome(reply, ops);
  if (reply.elements != 1 + 3 * ops) return outcome;
  outcome.kind = Outcome::Kind::kDone;
  outcome.watched = IntAt(reply, 0) < 0;
  outcome.now_ms = std::abs(IntAt(reply, 0));
  outcome.rows = absl::MakeConstSpan(reply.element + 1, 3 * ops);
  return outcome;
}

Result DecodeRenewal(const redisReply& code, const redisReply& lease, const redisReply& max_hold) {
  switch (code.integer) {
    case kRenewed:
      return Renewed{FromMillis(lease.integer), FromMillis(max_hold.integer)};
    case kHoldGone:
      return DecodeGone(lease.integer, max_hold.integer);
    case kNoLock:
      return NoLock();
    default:
      return Unexpected(code);
  }
}

std::optional<KeyReport> DecodeReport(const redisReply& reply, KeyName name) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) return std::nullopt;
  KeyReport report;
  report.name = std::move(name);
  report.token = IntAt(reply, 1);
  report.kept_for = FromMillis(IntAt(reply, 2));
  report.mode = ModeOf(IntAt(reply, 4));
  report.limit = Count(IntAt(reply, 5));
  report.holds = Count(IntAt(reply, 6));
  report.holders = DecodeHolders(*reply.element[3], report.mode);
  if (reply.elements > 7) report.line = DecodeLine(*reply.element[7]);
  return report;
}

ErrorKind KindOfError(absl::string_view message) {
  // Before Redis 7 an error inside a script is quoted in the middle of another message.
  const auto says = [&](absl::string_view word) {
    return absl::StartsWith(message, absl::StrCat(word, " ")) ||
           absl::StrContains(message, absl::StrCat(": -", word, " "));
  };
  if (says("NOSCRIPT")) return ErrorKind::kNoScript;
  if (says("WRONGTYPE") || absl::StrContains(message, "WRONGTYPE Operation")) {
    return ErrorKind::kWrongType;
  }
  if (says("OOM")) return ErrorKind::kOutOfMemory;
  for (absl::string_view word :
       {"LOADING", "BUSY", "MASTERDOWN", "READONLY", "UNBLOCKED", "NOAUTH", "CLUSTERDOWN"}) {
    if (says(word)) return ErrorKind::kUnfit;
  }
  return ErrorKind::kOther;
}

StoreFailure NoLock() {
  return {StoreFailureKind::kWrongType, false, "what is stored under the key is no lock"};
}

StoreFailure Unexpected(const redisReply& reply) {
  return {StoreFailureKind::kOther, true,
          absl::StrCat("unexpected answer from Redis (type ", reply.type, ")",
                       reply.str == nullptr ? "" : absl::StrCat(": ", reply.str))};
}

}  // namespace holdfast::redis
