// SPDX-License-Identifier: Apache-2.0
#include "client/cli/mode.h"

#include "absl/strings/strip.h"

namespace holdfast::cli {

namespace {

template <typename Message>
void SetModeOf(const ModeOptions& mode, Message& message) {
  if (mode.shared) message.set_mode(v1::MODE_SHARED);
  if (mode.permits == 0) return;
  message.set_mode(v1::MODE_PERMIT);
  message.set_limit(mode.permits);
}

}  // namespace

void SetMode(const ModeOptions& mode, v1::AcquireRequest& request) {
  SetModeOf(mode, request);
  if (mode.fifo) request.set_ordering(v1::ORDERING_FIFO);
}
void SetMode(const ModeOptions& mode, v1::KeyAndMode& key) { SetModeOf(mode, key); }

std::string ModeName(v1::Mode mode) {
  return std::string(absl::StripPrefix(v1::Mode_Name(mode), "MODE_"));
}

std::string ModeWord(v1::Mode mode) {
  if (mode == v1::MODE_SHARED) return "shared";
  return mode == v1::MODE_PERMIT ? "permit" : "";
}

}  // namespace holdfast::cli
