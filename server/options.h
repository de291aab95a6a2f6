// SPDX-License-Identifier: Apache-2.0
//
// What holdfastd can be told, and how: by flag, by environment variable, in a YAML file, or not at
// all, in this order of precedence. Each option is defined once, in option_table.cc; flags,
// variables, file keys, --help and --print-config all come from there.
//
//   --max-lease=30s     HOLDFAST_MAX_LEASE=30s     max-lease: 30s
//
// Where a flag is given twice, the last one counts; a repeatable option collects them, and replaces
// all that a weaker source said. An empty variable counts as unset.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/log.h"
#include "src/base/limits.h"
#include "src/engine/engine.h"

namespace holdfast::server {

struct Options {
  // "127.0.0.1:7420", "[::1]:7420", "unix:///run/holdfast/holdfast.sock"; port 0: any free one.
  std::vector<std::string> listen = {"127.0.0.1:7420"};
  std::string store = "memory:";
  std::string default_namespace = "default";
  std::string redis_prefix = "holdfast:";
  absl::Duration max_lease = limits::kDefaultMaxLease;
  absl::Duration default_max_hold = limits::kDefaultMaxHold;  // 0: none
  bool default_fifo = false;
  bool no_grace = false;
  bool behind_proxy = false;
  std::vector<engine::ReleaseDelay> release_delays;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  absl::Duration drain_limit = absl::Seconds(10);

  // Not in the file: where it is, and what to do instead of serving.
  std::string config;
  bool check_config = false;
  bool print_config = false;
  bool version = false;
  bool help = false;
};

// Looks a variable up; nullopt: not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The machine's environment.
std::optional<std::string> ProcessEnvironment(const std::string& name);

// Puts the sources together. `arguments` is the command line without the program. Errors are
// INVALID_ARGUMENT with one line for people: where it stands, the value, what is allowed. With
// --help or --version nothing but the flags is read.
absl::StatusOr<Options> LoadOptions(const std::vector<std::string>& arguments,
                                    const Environment& environment);

// What --help prints.
std::string HelpText();

// The options as a YAML file that gives these options again, except that passwords are masked.
std::string PrintConfig(const Options& options);

}  // namespace holdfast::server
