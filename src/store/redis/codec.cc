// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/codec.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

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

std::vector<HolderState> DecodeHolders(const redisReply& rows) {
  std::vector<HolderState> holders;
  for (size_t i = 0; rows.type == REDIS_REPLY_ARRAY && i < rows.elements; ++i) {
    const redisReply& row = *rows.element[i];
    holders.push_back({TextAt(row, 0), TextAt(row, 1), TextAt(row, 2), Mode::kExclusive,
                       Count(IntAt(row, 3)), TextAt(row, 4), FromMillis(IntAt(row, 5)),
                       FromMillis(IntAt(row, 6)), IntAt(row, 7) != 0});
  }
  return holders;
}

HoldGone DecodeGone(int64_t held, int64_t owner_count) { return {held != 0, Count(owner_count)}; }

void EncodeHold(const HoldRef& hold, RespWriter* out) {
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

}  // namespace

void EncodeAcquire(const AcquireOp& op, const std::string& incarnation, const KeyLayout& layout,
                   RespWriter* out) {
  std::array<char, 5> flags;
  size_t n = 0;
  if (op.refuse_reentry) flags.at(n++) = 'r';
  if (op.only_reentry) flags.at(n++) = 'o';
  if (op.replay_only) flags.at(n++) = 'p';
  if (op.will_wait) flags.at(n++) = 'w';
  if (op.others_wait) flags.at(n++) = 't';
  out->Arg(int64_t{2});
  out->Arg(layout.state_key());
  out->Arg(layout.LockKey(op.hold.name));
  out->Arg(incarnation);
  EncodeHold(op.hold, out);
  out->Arg(Millis(op.lease));
  out->Arg(LimitMillis(op.max_hold));
  out->Arg(Millis(op.min_hold));
  out->Arg(op.op_id);
  out->Arg(op.note);
  out->Arg(absl::string_view(flags.data(), n));
}

void EncodeRelease(const ReleaseOp& op, const std::string& incarnation, const KeyLayout& layout,
                   RespWriter* out) {
  out->Arg(int64_t{2});
  out->Arg(layout.state_key());
  out->Arg(layout.LockKey(op.hold.name));
  out->Arg(incarnation);
  EncodeHold(op.hold, out);
  out->Arg(op.kind == ReleaseKind::kOne ? "o" : op.kind == ReleaseKind::kAll ? "a" : "u");
  out->Arg(op.op_id);
}

void EncodeRenew(absl::Span<const RenewOp* const> ops, const std::string& incarnation,
                 const KeyLayout& layout, RespWriter* out) {
  out->Arg(static_cast<int64_t>(1 + ops.size()));
  out->Arg(layout.state_key());
  for (const RenewOp* op : ops) out->Arg(layout.LockKey(op->hold.name));
  out->Arg(incarnation);
  for (const RenewOp* op : ops) {
    EncodeHold(op->hold, out);
    out->Arg(Millis(op->lease));
  }
}

Decoded DecodeAcquire(const redisReply& reply, const AcquireOp& op) {
  switch (CodeOf(reply)) {
    case kFreshlyGranted:
      return {FreshGrant(op, IntAt(reply, 1)), IntAt(reply, 2)};
    case kGranted:
      return {
          Granted{TextAt(reply, 3), IntAt(reply, 2), Count(IntAt(reply, 4)), Count(IntAt(reply, 5)),
                  FromMillis(IntAt(reply, 6)), FromMillis(IntAt(reply, 7)), IntAt(reply, 8) != 0},
          IntAt(reply, 1)};
    case kBusy: {
      Busy busy{{}, FromMillis(IntAt(reply, 2))};
      if (reply.elements > 3) busy.holders = DecodeHolders(*reply.element[3]);
      return {std::move(busy), IntAt(reply, 1)};
    }
    case kReentryRefused:
      return {ReentryRefused{}};
    case kHoldGone:
      return {DecodeGone(IntAt(reply, 1), IntAt(reply, 2))};
    case kNewIncarnation:
      return {InGrace{FromMillis(IntAt(reply, 1))}, IntAt(reply, 2), true};
    case kInGrace:
      return {InGrace{FromMillis(IntAt(reply, 1))}, IntAt(reply, 2)};
    case kNoLock:
      return {NoLock()};
    case kHoldIdInUse:
      return {StoreFailure{StoreFailureKind::kOther, false, "the hold id is in use"}};
    case kTooManyCounts:
      return {StoreFailure{StoreFailureKind::kOther, false, "the owner holds the key too often"}};
    default:
      return {Unexpected(reply)};
  }
}

Decoded DecodeRelease(const redisReply& reply) {
  switch (CodeOf(reply)) {
    case kReleased:
      if (reply.type == REDIS_REPLY_INTEGER) return {Released{0, 0, true, absl::ZeroDuration()}};
      return {Released{Count(IntAt(reply, 1)), Count(IntAt(reply, 2)), IntAt(reply, 3) != 0,
                       FromMillis(IntAt(reply, 4))}};
    case kHoldGone:
      return {DecodeGone(IntAt(reply, 1), IntAt(reply, 2))};
    case kNewIncarnation:
      return {InGrace{FromMillis(IntAt(reply, 1))}, IntAt(reply, 2), true};
    case kNoLock:
      return {NoLock()};
    default:
      return {Unexpected(reply)};
  }
}

std::vector<Decoded> DecodeRenew(const redisReply& reply, size_t ops) {
  if (reply.type == REDIS_REPLY_ARRAY && reply.elements == 3 &&
      IntAt(reply, 0) == kNewIncarnation) {
    return {{InGrace{FromMillis(IntAt(reply, 1))}, IntAt(reply, 2), true}};
  }
  std::vector<Decoded> out;
  const int64_t now = IntAt(reply, 0);
  for (size_t i = 0; i < ops; ++i) {
    const size_t at = 1 + 3 * i;
    switch (IntAt(reply, at)) {
      case kRenewed:
        out.push_back(
            {Renewed{FromMillis(IntAt(reply, at + 1)), FromMillis(IntAt(reply, at + 2))}, now});
        break;
      case kHoldGone:
        out.push_back({DecodeGone(IntAt(reply, at + 1), IntAt(reply, at + 2)), now});
        break;
      case kNoLock:
        out.push_back({NoLock(), now});
        break;
      default:
        out.push_back({Unexpected(reply)});
    }
  }
  return out;
}

std::optional<KeyReport> DecodeReport(const redisReply& reply, KeyName name) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) return std::nullopt;
  KeyReport report;
  report.name = std::move(name);
  report.token = IntAt(reply, 1);
  report.kept_for = FromMillis(IntAt(reply, 2));
  report.holders = DecodeHolders(*reply.element[3]);
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
