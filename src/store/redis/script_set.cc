// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/script_set.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/base/key_news.h"
#include "src/base/limits.h"
#include "src/store/redis/embedded_scripts.h"

namespace holdfast::redis {
namespace {

// The version of the data's format. A daemon refuses data of a newer one.
constexpr int kFormat = 1;

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::string_view SharedPart(absl::string_view name) {
  const std::pair<std::string_view, std::string_view> kParts[] = {
      {"apply_many", scripts::kApplyMany},       {"common_many", scripts::kCommonMany},
      {"apply_give", scripts::kApplyGive},       {"apply_rest", scripts::kApplyRest},
      {"apply_take", scripts::kApplyTake},       {"common_holders", scripts::kCommonHolders},
      {"apply_line", scripts::kApplyLine},       {"common_line", scripts::kCommonLine},
      {"common_newinc", scripts::kCommonNewinc}, {"common_publish", scripts::kCommonPublish},
      {"common_settle", scripts::kCommonSettle}, {"common_view", scripts::kCommonView},
      {"common_watch", scripts::kCommonWatch},
  };
  for (const auto& [part, text] : kParts) {
    if (View(part) == name) return View(text);
  }
  std::abort();  // a script includes what does not exist
}

std::string Number(LossReason reason) { return absl::StrCat(static_cast<int>(reason)); }

// Comments and indentation are for readers of the source; a server need not hash and parse them.
void AppendStripped(absl::string_view text, std::string* out) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "-- #include ")) {
      AppendStripped(SharedPart(line), out);
    } else if (!line.empty() && !absl::StartsWith(line, "--")) {
      absl::StrAppend(out, line, "\n");
    }
  }
}

std::string Assemble(std::string_view source, absl::Duration max_lease, bool wide,
                     absl::string_view shebang) {
  std::string text(shebang);
  AppendStripped(View(source), &text);
  return absl::StrReplaceAll(
      text, {{"MAX_LEASE", absl::StrCat(absl::ToInt64Milliseconds(max_lease))},
             {"MAX_HOLDERS", absl::StrCat(limits::kMaxHoldersInAnswer)},
             {"MAX_HOLDS", absl::StrCat(limits::kMaxHoldsPerKey)},
             {"MAX_COUNT", absl::StrCat(limits::kMaxHoldCount)},
             {"CLAIM_TIME", absl::StrCat(absl::ToInt64Milliseconds(limits::kClaimTime))},
             {"DAEMON_SILENCE", absl::StrCat(absl::ToInt64Milliseconds(limits::kDaemonSilence))},
             {"LINE_EXPIRY", absl::StrCat(absl::ToInt64Milliseconds(limits::kLineExpiry))},
             {"MAX_WAITERS", absl::StrCat(limits::kMaxWaitersInReport)},
             {"WRITER_PATIENCE", absl::StrCat(absl::ToInt64Milliseconds(limits::kWriterPatience))},
             {"LOST_BY_EXPIRY", Number(LossReason::kLeaseExpired)},
             {"LOST_BY_FORCE", Number(LossReason::kForced)},
             {"LOST_BY_SESSION", Number(LossReason::kSessionClosed)},
             {"LOST_BY_STORE", Number(LossReason::kStoreLostIt)},
             {"OPS_PER_HOLD", absl::StrCat(limits::kOpsPerHold)},
             {"TOKEN_EPOCH", absl::StrCat(limits::kTokenEpochUnixMillis)},
             {"TOKENS_PER_MILLI", absl::StrCat(limits::kTokensPerMilli)},
             // Printing an integer is much cheaper than printing a floating-point number.
             {"INT", wide ? "%d" : "%.0f"},
             {"FORMAT", absl::StrCat(kFormat)}});
}

}  // namespace

void ScriptSet::Build(const ServerInfo& server) {
  const bool flags = server.major_version >= 7;
  const bool wide = server.word_bits >= 64;
  const absl::string_view full = flags ? "#!lua flags=allow-oom\n" : "";
  const absl::string_view reading = flags ? "#!lua flags=no-writes\n" : "";
  const auto set = [&](Script script, std::string_view source, absl::string_view shebang) {
    entries_.at(static_cast<size_t>(script)) = {Assemble(source, max_lease_, wide, shebang), ""};
  };
  set(Script::kApply, scripts::kApply, "");
  set(Script::kGive, scripts::kApply, full);
  set(Script::kRenew, scripts::kRenew, full);
  set(Script::kInspect, scripts::kInspect, reading);
  set(Script::kForce, scripts::kForce, full);
  set(Script::kBeat, scripts::kBeat, full);
  set(Script::kWatch, scripts::kWatch, full);
  open_ = Assemble(scripts::kOpen, max_lease_, wide, full);
}

void ScriptSet::set_sha(Script script, absl::string_view sha) {
  entries_.at(static_cast<size_t>(script)).sha = std::string(sha);
}

}  // namespace holdfast::redis
