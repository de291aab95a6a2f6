// SPDX-License-Identifier: Apache-2.0
//
// Ids from the kernel's random numbers.
#pragma once

#include <string>

#include "src/base/ids.h"

namespace holdfast::server {

// 26 or 15 characters of [a-z2-7], which carry 130 or 75 random bits. Any thread may ask.
class RandomIds final : public IdSource {
 public:
  std::string NewId() override;
  std::string NewShortId() override;
};

}  // namespace holdfast::server
