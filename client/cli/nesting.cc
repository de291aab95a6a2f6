// SPDX-License-Identifier: Apache-2.0
#include "client/cli/nesting.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace holdfast::cli {
namespace {

constexpr char kToken[] = "HOLDFAST_TOKEN=";
constexpr char kTokens[] = "HOLDFAST_TOKENS=";
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

Environment EnvironmentInside(const Environment& environment,
                              const std::vector<LockAround>& locks) {
  Environment inside;
  for (const std::string& entry : environment) {
    const bool ours = absl::StartsWith(entry, kToken) || absl::StartsWith(entry, kTokens) ||
                      absl::StartsWith(entry, kKey) || absl::StartsWith(entry, kOwner) ||
                      absl::StartsWith(entry, kChain);
    if (!ours) inside.push_back(entry);
  }
  const LockAround& first = locks.front();
  inside.push_back(absl::StrCat(kToken, first.token));
  inside.push_back(absl::StrCat(kKey, first.name.key));
  inside.push_back(absl::StrCat(kOwner, first.owner));
  std::string tokens = kTokens;
  std::string chain = kChain;
  for (const LockAround& lock : locks) {
    const bool is_first = &lock == &first;
    absl::StrAppend(&tokens, is_first ? "" : "\n", lock.token, " ", lock.name.key);
    absl::StrAppend(&chain, is_first ? "" : ",", ChainName(lock.name), lock.owner);
  }
  const absl::string_view outer = Value(environment, kChain);
  inside.push_back(std::move(tokens));
  inside.push_back(absl::StrCat(chain, outer.empty() ? "" : ",", outer));
  return inside;
}

}  // namespace holdfast::cli
