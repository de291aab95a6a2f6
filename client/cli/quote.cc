// SPDX-License-Identifier: Apache-2.0
#include "client/cli/quote.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace holdfast::cli {

std::string Quote(absl::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           absl::string_view("-_./:@%+,=").find(static_cast<char>(c)) != absl::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace holdfast::cli
