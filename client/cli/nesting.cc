// SPDX-License-Identifier: Apache-2.0
#include "client/cli/nesting.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace holdfast::cli {
namespace {

constexpr char kToken[] = "HOLDFAST_TOKEN=";
constexpr char kKey[] = "HOLDFAST_KEY=";
constexpr char kOwner[] = "HOLDFAST_OWNER=";
constexpr char kChain[] = "HOLDFAST_CHAIN=";

// Empty where it is not set.
absl::string_view Value(const Environment& environment, absl::string_view name_and_equals) {
  for (const std::string& entry : environment) {
    absl::string_view value = entry;
    if (absl::ConsumePrefix(&value, name_and_equals)) return value;
  }
  return "";
}

std::string ChainName(const KeyName& name) {
  return absl::StrCat(OwnerFingerprint(name.ToString()), "=");
}

}  // namespace

Environment CurrentEnvironment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

std::string OwnerAround(const Environment& environment, const KeyName& name) {
  const std::string wanted = ChainName(name);
  for (absl::string_view link : absl::StrSplit(Value(environment, kChain), ',')) {
    if (absl::ConsumePrefix(&link, wanted)) return std::string(link);
  }
  // Set by hand, or by another language's library.
  if (Value(environment, kKey) == name.key) return std::string(Value(environment, kOwner));
  return "";
}

Environment EnvironmentInside(const Environment& environment, const KeyName& name,
                              const std::string& owner, int64_t token) {
  Environment inside;
  for (const std::string& entry : environment) {
    const bool ours = absl::StartsWith(entry, kToken) || absl::StartsWith(entry, kKey) ||
                      absl::StartsWith(entry, kOwner) || absl::StartsWith(entry, kChain);
    if (!ours) inside.push_back(entry);
  }
  inside.push_back(absl::StrCat(kToken, token));
  inside.push_back(absl::StrCat(kKey, name.key));
  inside.push_back(absl::StrCat(kOwner, owner));
  const absl::string_view chain = Value(environment, kChain);
  inside.push_back(absl::StrCat(kChain, ChainName(name), owner, chain.empty() ? "" : ",", chain));
  return inside;
}

}  // namespace holdfast::cli
