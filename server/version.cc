// SPDX-License-Identifier: Apache-2.0
#include "server/version.h"

namespace holdfast::server {

absl::string_view Version() { return HOLDFAST_VERSION; }

}  // namespace holdfast::server
