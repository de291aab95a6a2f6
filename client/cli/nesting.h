// SPDX-License-Identifier: Apache-2.0
//
// One `run` inside another. The inner one must take a key that the outer ones
// hold as their owner, else it would wait for itself; and any other key as an
// owner of its own, else two inner ones side by side would share it.
//
// HOLDFAST_TOKEN, HOLDFAST_KEY and HOLDFAST_OWNER tell the command about the
// innermost lock; HOLDFAST_CHAIN lists all of them, as `fingerprint=owner` with
// commas between, for nested runs only.
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

// What the command is given.
Environment EnvironmentInside(const Environment& environment, const KeyName& name,
                              const std::string& owner, int64_t token);

}  // namespace holdfast::cli
