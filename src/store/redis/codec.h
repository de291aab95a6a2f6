// SPDX-License-Identifier: Apache-2.0
//
// Requests as script calls, and the scripts' answers as results. Pure: no
// connection, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "src/base/store_types.h"
#include "src/store/redis/key_layout.h"
#include "src/store/redis/resp_writer.h"
#include "src/store/redis/string_packer.h"

struct redisReply;

namespace holdfast::redis {

using Result = decltype(StoreReply::result);

// ---- Encoding: what follows "EVALSHA <sha>" ----

// How many arguments EncodeX writes.
inline size_t ApplyArgs(size_t ops) { return 1 + (1 + ops) + 3; }
inline constexpr size_t kForceArgs = 1 + 2 + 3;
inline constexpr size_t kWatchArgs = 1 + 1 + 2;
inline size_t RenewArgs(size_t ops) { return 1 + (1 + ops) + (1 + 4 * ops); }

inline constexpr size_t kBeatArgs = 1 + 1 + 2;

// What goes through apply.lua: acquires, releases, and what looks after lines.
bool IsApplied(const StoreRequest& request);

// `requests` are carried out in their order in one step. `life` is the daemon's.
void EncodeApply(absl::Span<const StoreRequest> requests, const std::string& incarnation,
                 const std::string& life, const KeyLayout& layout, StringPacker* packer,
                 RespWriter* out);
void EncodeBeat(const std::string& incarnation, const std::string& life, const KeyLayout& layout,
                RespWriter* out);
void EncodeForce(const ForceOp& op, const std::string& incarnation, const KeyLayout& layout,
                 RespWriter* out);
// Somebody watches, for limits::kWatchSpan.
void EncodeWatch(const std::string& incarnation, const KeyLayout& layout, RespWriter* out);
void EncodeRenew(absl::Span<const RenewOp* const> ops, const std::string& incarnation,
                 const KeyLayout& layout, RespWriter* out);

// ---- Decoding ----

// What the answer to a call says before its results.
struct Outcome {
  enum class Kind {
    kDone,
    // The script found another incarnation's data, opened a grace period and did nothing else.
    kNewIncarnation,
    kMalformed,
  };
  Kind kind = Kind::kMalformed;
  int64_t now_ms = 0;  // the server's clock, since 1970
  absl::Duration grace;
  bool watched = false;  // somebody watches
  // kDone: the rows, one for each request.
  absl::Span<redisReply* const> rows;
};
Outcome DecodeOutcome(const redisReply& reply, size_t requests);

// A row that is a number other than 0.
bool SaysYes(const redisReply& row);

// `row` answers `op`: short ones leave out what follows from it.
Result DecodeAcquire(const redisReply& row, const AcquireOp& op);
Result DecodeRelease(const redisReply& row);
Result DecodeForce(const redisReply& reply);

// For renewals: three numbers each.
Outcome DecodeRenewOutcome(const redisReply& reply, size_t ops);
Result DecodeRenewal(const redisReply& code, const redisReply& lease, const redisReply& max_hold);

// One row of inspect.lua; nullopt: no lock, or `reply` is malformed.
std::optional<KeyReport> DecodeReport(const redisReply& reply, KeyName name);

// ---- Errors ----

enum class ErrorKind {
  kNoScript,  // the server forgot its scripts
  kUnfit,     // the server cannot serve now (loading, busy, replica): as if unreachable
  kWrongType,
  kOutOfMemory,
  kOther,
};
ErrorKind KindOfError(absl::string_view message);

StoreFailure NoLock();
StoreFailure Unexpected(const redisReply& reply);

}  // namespace holdfast::redis
