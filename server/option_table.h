// SPDX-License-Identifier: Apache-2.0
//
// The one definition of each option. Private to options*.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/options.h"

namespace holdfast::server {

// Where an option may be given.
enum class OptionScope {
  kEverywhere,  // flag, variable, file
  kFlagOrEnv,   // where the file is
  kFlagOnly,    // what to do
};

struct OptionSpec {
  absl::string_view name;   // the flag without its dashes; the file's key
  absl::string_view value;  // what --help calls the value; empty: a switch
  OptionScope scope;
  bool repeatable;
  absl::string_view help;
  // Takes one value over. The message of a failure says what is allowed, and no more.
  absl::Status (*set)(absl::string_view value, Options& options);
  // Its values, as `set` would read them.
  std::vector<std::string> (*get)(const Options& options);
  // Repeatable ones: forgets what a weaker source said.
  void (*clear)(Options& options) = nullptr;

  bool is_switch() const { return value.empty(); }
  std::string flag() const;      // "--max-lease"
  std::string variable() const;  // "HOLDFAST_MAX_LEASE"
};

absl::Span<const OptionSpec> OptionTable();

// What one source says: the values of an option, and where they stand ("--listen",
// "HOLDFAST_LISTEN", "/etc/holdfast.yaml:3: listen").
struct GivenValues {
  std::string where;
  std::vector<std::string> values;
};
using Given = std::map<const OptionSpec*, GivenValues>;

// INVALID_ARGUMENT about `option`, for people.
absl::Status OptionError(const OptionSpec& option, absl::string_view message);

// Reads one source. The last two skip what may not stand there; an unknown key is an error that
// suggests the nearest one.
absl::StatusOr<Given> ReadFlags(const std::vector<std::string>& arguments);
absl::StatusOr<Given> ReadEnvironment(const Environment& environment);
absl::StatusOr<Given> ReadFile(const std::string& path);

// " (did you mean X?)" where an option's name is close to `word`, else "". `prefix` goes before the
// name: "--" for flags.
std::string DidYouMean(absl::string_view word, absl::string_view prefix, OptionScope widest);

}  // namespace holdfast::server
