// SPDX-License-Identifier: Apache-2.0
#include "client/cli/mode.h"

#include "absl/strings/strip.h"

namespace holdfast::cli {

void SetMode(const ModeOptions& mode, v1::AcquireRequest& request) {
  if (mode.shared) request.set_mode(v1::MODE_SHARED);
  if (mode.permits == 0) return;
  request.set_mode(v1::MODE_PERMIT);
  request.set_limit(mode.permits);
}

std::string ModeName(v1::Mode mode) {
  return std::string(absl::StripPrefix(v1::Mode_Name(mode), "MODE_"));
}

std::string ModeWord(v1::Mode mode) {
  if (mode == v1::MODE_SHARED) return "shared";
  return mode == v1::MODE_PERMIT ? "permit" : "";
}

}  // namespace holdfast::cli
