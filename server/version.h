// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace holdfast::server {

// "0.1.0": the version that the build is of.
absl::string_view Version();

}  // namespace holdfast::server
