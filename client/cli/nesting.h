// SPDX-License-Identifier: Apache-2.0
//
// One `run` inside another. The inner one must take a key that the outer ones
// hold as their owner, else it would wait for itself; and any other key as an
// owner of its own, else two inner ones side by side would share it.
//
// HOLDFAST_TOKEN, HOLDFAST_KEY and HOLDFAST_OWNER tell the command about the
// innermost lock, the first where it is several. HOLDFAST_TOKENS has a line for
// each of those: its token, a space, the key. HOLDFAST_CHAIN lists all of them, as
// `fingerprint=owner` with commas between, for nested runs only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/base/names.h"

namespace holdfast::cli {

// NAME=value.
using Environment = std::vector<std::string>;

// This process's.
Environment CurrentEnvironment();

// The owner who holds `name` around this process; empty: nobody.
std::string OwnerAround(const Environment& environment, const KeyName& name);

// One lock that the command runs under.
struct LockAround {
  KeyName name;
  std::string owner;
  int64_t token = 0;
};

// What the command is given. `locks` has at least one.
Environment EnvironmentInside(const Environment& environment, const std::vector<LockAround>& locks);

}  // namespace holdfast::cli
