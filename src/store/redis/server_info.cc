// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/server_info.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace holdfast::redis {

std::string ServerInfo::Incarnation() const {
  return run_id.empty() ? "" : absl::StrCat(run_id, ":", repl_id);
}

void ParseInfo(absl::string_view text, ServerInfo* info) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(absl::StripAsciiWhitespace(line), absl::MaxSplits(':', 1));
    if (field.first == "run_id") {
      info->run_id = std::string(field.second);
    } else if (field.first == "master_replid") {
      info->repl_id = std::string(field.second);
    } else if (field.first == "role") {
      info->role = std::string(field.second);
    } else if (field.first == "arch_bits") {
      if (!absl::SimpleAtoi(field.second, &info->word_bits)) info->word_bits = 32;
    } else if (field.first == "redis_version") {
      const absl::string_view major = field.second.substr(0, field.second.find('.'));
      if (!absl::SimpleAtoi(major, &info->major_version)) info->major_version = 0;
    }
  }
}

}  // namespace holdfast::redis
