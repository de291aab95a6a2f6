// SPDX-License-Identifier: Apache-2.0
#include "server/option_table.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/store_factory.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

constexpr absl::Duration kMaxDrainLimit = absl::Hours(24);
constexpr size_t kMaxPrefixBytes = 128;

absl::Status NotAllowed(absl::string_view rule) { return absl::InvalidArgumentError(rule); }

absl::Status SetSwitch(absl::string_view value, bool& to) {
  if (value != "true" && value != "false") return NotAllowed("true or false");
  to = value == "true";
  return absl::OkStatus();
}

// A duration within bounds; also 0 where that has a meaning of its own.
absl::Status SetDuration(absl::string_view value, absl::Duration min, absl::Duration max,
                         absl::string_view zero_means, absl::Duration& to) {
  const absl::StatusOr<absl::Duration> parsed = ParseDuration(value, "");
  const bool zero = parsed.ok() && *parsed == absl::ZeroDuration() && !zero_means.empty();
  if (!zero && (!parsed.ok() || *parsed < min || *parsed > max)) {
    std::string rule = absl::StrCat("a duration from ", DurationText(min), " to ",
                                    DurationText(max), ", such as 250ms, 5s, 3m or 1h");
    if (!zero_means.empty()) absl::StrAppend(&rule, "; 0: ", zero_means);
    return NotAllowed(rule);
  }
  to = *parsed;
  return absl::OkStatus();
}

absl::Status SetListen(absl::string_view value, Options& options) {
  constexpr absl::string_view kRule =
      "HOST:PORT such as 127.0.0.1:7420 or [::1]:7420 (port 0: any free one), or "
      "unix:///absolute/path";
  const absl::string_view unix_scheme = "unix://";
  if (value.substr(0, unix_scheme.size()) == unix_scheme) {
    const absl::string_view path = value.substr(unix_scheme.size());
    if (path.size() < 2 || path.front() != '/' || path.back() == '/') return NotAllowed(kRule);
  } else {
    const size_t colon = value.rfind(':');
    uint32_t port = 0;
    if (colon == absl::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(value.substr(colon + 1), &port) || port > 65535) {
      return NotAllowed(kRule);
    }
    const absl::string_view host = value.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (!bracketed && host.find_first_of(":/ []") != absl::string_view::npos)
      return NotAllowed(kRule);
  }
  options.listen.emplace_back(value);
  return absl::OkStatus();
}

absl::Status SetNamespace(absl::string_view value, Options& options) {
  if (!CheckNamespace(value).ok()) return NotAllowed("1 to 64 of a-z, 0-9, '.', '_' and '-'");
  options.default_namespace = std::string(value);
  return absl::OkStatus();
}

absl::Status SetRedisPrefix(absl::string_view value, Options& options) {
  // Braces would move Redis Cluster's hash tag from the key to the prefix.
  const bool braces = value.find_first_of("{}") != absl::string_view::npos;
  if (value.size() > kMaxPrefixBytes || !CheckPrefix(value).ok() || braces) {
    return NotAllowed(absl::StrCat("0 to ", kMaxPrefixBytes,
                                   " bytes of UTF-8 without control characters and braces"));
  }
  options.redis_prefix = std::string(value);
  return absl::OkStatus();
}

absl::Status SetLogLevel(absl::string_view value, Options& options) {
  constexpr std::array<absl::string_view, 4> kNames = {"error", "warn", "info", "debug"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (value == kNames[i]) {
      options.log_level = static_cast<LogLevel>(i);
      return absl::OkStatus();
    }
  }
  return NotAllowed("error, warn, info or debug");
}

// The key may have colons and equals signs, a namespace and a duration have none.
absl::Status SetReleaseDelay(absl::string_view value, Options& options) {
  const absl::Status wrong = NotAllowed(absl::StrCat(
      "NAMESPACE:PREFIX=DURATION, such as default:printer/=5s, or jobs:=1m for a whole namespace; "
      "from 1ms to ",
      DurationText(limits::kMaxReleaseDelay), ", ", limits::kMaxReleaseDelays, " of them at most"));
  const size_t colon = value.find(':');
  const size_t equals = value.rfind('=');
  if (colon == absl::string_view::npos || equals == absl::string_view::npos || equals < colon) {
    return wrong;
  }
  engine::ReleaseDelay rule{std::string(value.substr(0, colon)),
                            std::string(value.substr(colon + 1, equals - colon - 1)),
                            {}};
  const bool named = CheckNamespace(rule.ns).ok() && CheckPrefix(rule.prefix).ok();
  const bool timed = SetDuration(value.substr(equals + 1), absl::Milliseconds(1),
                                 limits::kMaxReleaseDelay, "", rule.delay)
                         .ok();
  if (!named || !timed || options.release_delays.size() >= limits::kMaxReleaseDelays) return wrong;
  options.release_delays.push_back(std::move(rule));
  return absl::OkStatus();
}

std::vector<std::string> ReleaseDelayTexts(const Options& options) {
  std::vector<std::string> texts;
  for (const engine::ReleaseDelay& rule : options.release_delays) {
    texts.push_back(absl::StrCat(rule.ns, ":", rule.prefix, "=", DurationText(rule.delay)));
  }
  return texts;
}

std::string LogLevelName(LogLevel level) {
  constexpr std::array<const char*, 4> kNames = {"error", "warn", "info", "debug"};
  return kNames.at(static_cast<size_t>(level));
}

absl::Status SetOrdering(absl::string_view value, Options& options) {
  if (value != "barging" && value != "fifo") return NotAllowed("barging or fifo");
  options.default_fifo = value == "fifo";
  return absl::OkStatus();
}

absl::Status SetLogFormat(absl::string_view value, Options& options) {
  if (value != "text" && value != "json") return NotAllowed("text or json");
  options.log_format = value == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

std::vector<std::string> Switch(bool on) { return {on ? "true" : "false"}; }

constexpr OptionScope kEverywhere = OptionScope::kEverywhere;
constexpr OptionScope kFlagOrEnv = OptionScope::kFlagOrEnv;
constexpr OptionScope kFlagOnly = OptionScope::kFlagOnly;

const OptionSpec kTable[] = {
    {"listen", "ADDRESS", kEverywhere, true,
     "where to serve: HOST:PORT or unix:///path; repeatable", SetListen,
     [](const Options& o) { return o.listen; }, [](Options& o) { o.listen.clear(); }},
    {"store", "URL", kEverywhere, false,
     "where the locks are kept: memory:, memory:/state/folder, redis://, rediss:// or "
     "redis+unix://",
     [](absl::string_view v, Options& o) {
       o.store = std::string(v);
       return CheckStoreUrl(v);
     },
     [](const Options& o) { return std::vector<std::string>{MaskStoreUrl(o.store)}; }},
    {"namespace", "NAME", kEverywhere, false, "the namespace of requests that name none",
     SetNamespace, [](const Options& o) { return std::vector<std::string>{o.default_namespace}; }},
    {"redis-prefix", "TEXT", kEverywhere, false, "what every key in Redis begins with",
     SetRedisPrefix, [](const Options& o) { return std::vector<std::string>{o.redis_prefix}; }},
    {"max-lease", "DURATION", kEverywhere, false,
     "the longest lease that a client may ask for, and the length of a grace period",
     [](absl::string_view v, Options& o) {
       return SetDuration(v, limits::kMinLease, limits::kMaxMaxLease, "", o.max_lease);
     },
     [](const Options& o) { return std::vector<std::string>{DurationText(o.max_lease)}; }},
    {"default-max-hold", "DURATION", kEverywhere, false,
     "how long a hold may live where the request does not say; 0: no limit",
     [](absl::string_view v, Options& o) {
       return SetDuration(v, limits::kMinLease, limits::kMaxMaxHold, "no limit",
                          o.default_max_hold);
     },
     [](const Options& o) { return std::vector<std::string>{DurationText(o.default_max_hold)}; }},
    {"default-ordering", "ORDERING", kEverywhere, false,
     "who is served first where the request does not say: barging (a newcomer may take a free key) "
     "or fifo (strictly in order of arrival, over all daemons)",
     SetOrdering,
     [](const Options& o) {
       return std::vector<std::string>{o.default_fifo ? "fifo" : "barging"};
     }},
    {"no-grace", "", kEverywhere, false,
     "nobody holds locks on this store: skip its grace period at start",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.no_grace); },
     [](const Options& o) { return Switch(o.no_grace); }},
    {"behind-proxy", "", kEverywhere, false,
     "a proxy stands before the daemon: a closed connection does not prove that a client is gone",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.behind_proxy); },
     [](const Options& o) { return Switch(o.behind_proxy); }},
    {"release-delay", "RULE", kEverywhere, true,
     "NAMESPACE:PREFIX=DURATION: keep these keys back so long when a holder died or lost its lock, "
     "for resources that cannot check tokens; repeatable",
     SetReleaseDelay, ReleaseDelayTexts, [](Options& o) { o.release_delays.clear(); }},
    {"log-level", "LEVEL", kEverywhere, false, "error, warn, info or debug", SetLogLevel,
     [](const Options& o) { return std::vector<std::string>{LogLevelName(o.log_level)}; }},
    {"log-format", "FORMAT", kEverywhere, false, "text or json, on standard error", SetLogFormat,
     [](const Options& o) {
       return std::vector<std::string>{o.log_format == LogFormat::kJson ? "json" : "text"};
     }},
    {"drain-limit", "DURATION", kEverywhere, false,
     "how long SIGTERM waits for holders before what they hold is lost",
     [](absl::string_view v, Options& o) {
       return SetDuration(v, absl::Milliseconds(1), kMaxDrainLimit, "do not wait", o.drain_limit);
     },
     [](const Options& o) { return std::vector<std::string>{DurationText(o.drain_limit)}; }},
    {"config", "FILE", kFlagOrEnv, false, "a YAML file with any of the options above",
     [](absl::string_view v, Options& o) {
       o.config = std::string(v);
       return v.empty() ? NotAllowed("the path of a file") : absl::OkStatus();
     },
     [](const Options& o) { return std::vector<std::string>{o.config}; }},
    {"check-config", "", kFlagOnly, false, "check the configuration and end",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.check_config); },
     [](const Options& o) { return Switch(o.check_config); }},
    {"print-config", "", kFlagOnly, false, "print the configuration in force, as a file, and end",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.print_config); },
     [](const Options& o) { return Switch(o.print_config); }},
    {"version", "", kFlagOnly, false, "print the version and end",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.version); },
     [](const Options& o) { return Switch(o.version); }},
    {"help", "", kFlagOnly, false, "print this and end",
     [](absl::string_view v, Options& o) { return SetSwitch(v, o.help); },
     [](const Options& o) { return Switch(o.help); }},
};

}  // namespace

std::string OptionSpec::flag() const { return absl::StrCat("--", name); }

std::string OptionSpec::variable() const {
  return absl::StrCat("HOLDFAST_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

absl::Span<const OptionSpec> OptionTable() { return kTable; }

absl::Status OptionError(const OptionSpec& option, absl::string_view message) {
  return Fail(Reason::kInvalidField, option.name, message);
}

}  // namespace holdfast::server
