// SPDX-License-Identifier: Apache-2.0
//
// Where unguessable ids come from. The daemon's comes from the kernel; a
// simulation's from its seed.
#pragma once

#include <string>

namespace holdfast {

class IdSource {
 public:
  virtual ~IdSource() = default;
  // A fresh id of 26 characters of [a-z2-7]: 128 unguessable bits, never given out before.
  virtual std::string NewId() = 0;
  // A fresh id of 15 characters, 75 unguessable bits, for what is copied so often that it should
  // fit into a std::string without an allocation. Too short for an owner.
  virtual std::string NewShortId() = 0;
};

}  // namespace holdfast
