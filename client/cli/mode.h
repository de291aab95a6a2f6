// SPDX-License-Identifier: Apache-2.0
//
// --shared, --permits and --fifo: what they ask for, and how a mode is called to people.
#pragma once

#include <cstdint>
#include <string>

#include "holdfast/v1/requests.pb.h"

namespace holdfast::cli {

struct ModeOptions {
  bool shared = false;
  uint32_t permits = 0;  // 0: no permit
  bool fifo = false;     // strict order of arrival, over all daemons
};

void SetMode(const ModeOptions& mode, v1::AcquireRequest& request);
void SetMode(const ModeOptions& mode, v1::KeyAndMode& key);

// "EXCLUSIVE", for programs.
std::string ModeName(v1::Mode mode);
// "shared"; empty where it goes without saying.
std::string ModeWord(v1::Mode mode);

}  // namespace holdfast::cli
