// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace holdfast::cli {

// The text as one word of a POSIX shell: as it is where that is safe, else in single quotes.
std::string Quote(absl::string_view text);

}  // namespace holdfast::cli
