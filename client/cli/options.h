// SPDX-License-Identifier: Apache-2.0
//
// The command line, as people type it, and what it means. Each option is
// defined once, in options.cc; help and errors come from there.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/mode.h"

namespace holdfast::cli {

// Before or after the command's name.
struct GlobalOptions {
  std::string address;  // where the daemon is
  std::string ns;       // empty: the daemon's default namespace
  bool json = false;
};

// What `run` does to the command when the lock is lost.
enum class OnLost {
  kTerm,      // TERM, then KILL, all before the lock's validity ends
  kKill,      // KILL
  kContinue,  // nothing but saying so
};

struct RunOptions {
  std::string key;
  std::vector<std::string> more_keys;  // to be held together with it
  ModeOptions mode;
  absl::Duration wait = absl::Seconds(5);
  std::optional<absl::Duration> lease;  // nullopt: the daemon's, 30s unless its --max-lease is less
  absl::Duration max_hold;              // 0: no limit; a backup may take its time
  absl::Duration at_least;
  OnLost on_lost = OnLost::kTerm;
  int retry = 0;
  int conflict_exit_code = 124;
  std::optional<std::string> note;  // nullopt: user@host, pid and program
  std::vector<std::string> command;
};

struct AcquireOptions {
  std::string key;
  std::vector<std::string> more_keys;
  ModeOptions mode;
  std::string owner;  // empty: the daemon makes one
  absl::Duration wait;
  std::optional<absl::Duration> lease;  // as in RunOptions
  absl::Duration max_hold;
  std::string note;
};

struct RenewOptions {
  std::string key;
  std::string owner;
  std::string hold_id;
  std::optional<absl::Duration> lease;  // nullopt: the hold's own
};

struct ReleaseOptions {
  std::string key;
  std::string owner;
  std::string hold_id;
};

struct InspectOptions {
  std::string key;
};

struct ListOptions {
  std::string prefix;
};

struct WatchOptions {
  std::string prefix;
};

struct PingOptions {};

struct CheckTokenOptions {
  std::string key;
  int64_t token = 0;
};

struct SessionsOptions {};

struct CloseSessionOptions {
  std::string session_id;
};

struct ForceReleaseOptions {
  std::string key;
  std::string hold_id;  // empty: all of the key
  bool immediate = false;
  std::string note;
};

struct CommandLine {
  GlobalOptions global;
  std::variant<RunOptions, AcquireOptions, RenewOptions, ReleaseOptions, InspectOptions,
               ListOptions, WatchOptions, PingOptions, CheckTokenOptions, SessionsOptions,
               CloseSessionOptions, ForceReleaseOptions>
      command;
};

// `arguments` without the program's name. Where there is nothing to do but to
// exit (help, wrong usage), says why and answers the exit code. Reads
// HOLDFAST_ADDRESS, HOLDFAST_NAMESPACE, HOLDFAST_OWNER and HOLDFAST_HOLD_ID
// where their options are not given.
std::variant<CommandLine, int> ParseCommandLine(std::vector<std::string> arguments,
                                                std::ostream& out, std::ostream& err);

}  // namespace holdfast::cli
