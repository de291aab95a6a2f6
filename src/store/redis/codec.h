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

struct redisReply;

namespace holdfast::redis {

using Result = decltype(StoreReply::result);

// ---- Encoding: what follows "EVALSHA <sha>" ----

// How many arguments EncodeX writes.
inline constexpr size_t kAcquireArgs = 1 + 2 + 10;
inline constexpr size_t kReleaseArgs = 1 + 2 + 6;
inline size_t RenewArgs(size_t ops) { return 1 + (1 + ops) + (1 + 4 * ops); }

void EncodeAcquire(const AcquireOp& op, const std::string& incarnation, const KeyLayout& layout,
                   RespWriter* out);
void EncodeRelease(const ReleaseOp& op, const std::string& incarnation, const KeyLayout& layout,
                   RespWriter* out);
void EncodeRenew(absl::Span<const RenewOp* const> ops, const std::string& incarnation,
                 const KeyLayout& layout, RespWriter* out);

// ---- Decoding ----

struct Decoded {
  Result result;
  // The server's clock, in ms since 1970, where the answer has it; else 0.
  int64_t now_ms = 0;
  // The script found another incarnation's data, opened a grace period and did nothing else.
  // `result` is then InGrace.
  bool new_incarnation = false;
};

// `op` is what was asked: short answers leave out what follows from it.
Decoded DecodeAcquire(const redisReply& reply, const AcquireOp& op);
Decoded DecodeRelease(const redisReply& reply);
// One for each renewal; a single one with new_incarnation set stands for all.
std::vector<Decoded> DecodeRenew(const redisReply& reply, size_t ops);

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
