// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "client/cli/exit_codes.h"
#include "client/lib/endpoint.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/names.h"

namespace holdfast::cli {
namespace {

constexpr int kMaxRetries = 1'000'000;

constexpr char kAbout[] =
    "Hold a lock for as long as the work takes.\n"
    "\n"
    "  holdfast run nightly-backup -- backup.sh     one at a time, wherever it is started";

constexpr char kFooter[] =
    "Durations are written as 250ms, 5s, 3m, 1h.\n"
    "\n"
    "Exit codes of run: the command's own (128+n where signal n ended it); 124 the lock is busy or "
    "the\n"
    "wait ran out; 125 the lock was lost; 126, 127 the command cannot be run or found; 69 no "
    "daemon, or\n"
    "it cannot serve now; 64 wrong usage.";

constexpr char kRunFooter[] =
    "The command is given HOLDFAST_TOKEN (the fencing token), HOLDFAST_KEY and HOLDFAST_OWNER; "
    "with\n"
    "several keys these are the first one's, and HOLDFAST_TOKENS has a line for each: its token, "
    "a\n"
    "space, the key. The loss of one of the locks counts as the loss of all. The command runs in\n"
    "a process group of its own; TERM, INT, HUP and QUIT are passed on to all of it, USR1 and USR2 "
    "to the\n"
    "command only. If this program is killed or stopped, the command is killed before anybody else "
    "can\n"
    "have the lock (except with --on-lost=continue).";

// A check for CLI11: empty, or what is wrong.
std::string Complaint(const absl::Status& status) {
  return status.ok() ? std::string() : std::string(status.message());
}

// CLI11 does not see the command behind `--`.
class RunFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: holdfast run KEY [OPTIONS] -- COMMAND [ARGUMENTS...]\n";
  }
};

// Defines the options of one command. The targets must outlive the parsing.
class Definer {
 public:
  explicit Definer(CLI::App* app) : app_(app) {}

  // `to`: absl::Duration, or an optional one.
  template <typename Target>
  CLI::Option* Duration(const std::string& name, Target* to, const std::string& help) {
    const auto parse = [name, to](const std::string& text) {
      const absl::StatusOr<absl::Duration> parsed = ParseDuration(text, name);
      if (!parsed.ok()) throw CLI::ValidationError(Complaint(parsed.status()));
      *to = *parsed;
    };
    return app_->add_option_function<std::string>(name, parse, help)->type_name("DURATION");
  }
  CLI::Option* Text(const std::string& name, std::string* to, const std::string& help,
                    const std::string& type) {
    return app_->add_option(name, *to, help)->type_name(type);
  }
  CLI::Option* Key(std::string* to) {
    return Text("KEY", to, "the name of the lock", "")
        ->required()
        ->check(Check([](const std::string& text) { return CheckKey(text); }));
  }
  void MoreKeys(std::vector<std::string>* to) {
    app_->add_option("--key", *to,
                     "another lock to be held together with it, all or none (again for each)")
        ->type_name("KEY")
        ->allow_extra_args(false)
        ->take_all()
        ->check(Check([](const std::string& text) { return CheckKey(text); }));
  }
  // Names a hold: the owner is a secret, so the environment is the better place for it.
  void Hold(std::string* owner, std::string* hold_id) {
    Text("--owner", owner, "who holds it, as acquire printed it", "OWNER")
        ->required()
        ->envname("HOLDFAST_OWNER");
    Text("--hold-id", hold_id, "which hold, as acquire printed it", "ID")
        ->required()
        ->envname("HOLDFAST_HOLD_ID");
  }
  void Mode(ModeOptions* to) {
    CLI::Option* const shared = app_->add_flag(
        "--shared", to->shared, "hold it together with others who ask for --shared: to read");
    app_->add_option("--permits", to->permits,
                     "hold one of N permits: at most so many at once; all must say the same N")
        ->type_name("N")
        ->check(CLI::Range(1U, limits::kMaxPermitLimit).description(""))
        ->excludes(shared);
    app_->add_flag("--fifo", to->fifo,
                   "wait strictly in order of arrival, at whichever daemon the others wait");
  }
  void Note(std::function<void(std::string)> set, const std::string& help) {
    app_->add_option_function<std::string>("--note", std::move(set), help)
        ->type_name("TEXT")
        ->check(Check([](const std::string& text) {
          return CheckText(text, "note", limits::kMaxNoteBytes);
        }));
  }

  static CLI::Validator Check(std::function<absl::Status(const std::string&)> check) {
    return CLI::Validator([check](std::string& text) { return Complaint(check(text)); }, "");
  }

 private:
  CLI::App* const app_;
};

void DefineGlobal(CLI::App* app, GlobalOptions* to) {
  to->address = client::kDefaultAddress;
  app->add_option("--address", to->address,
                  "where the daemon is: HOST:PORT or unix:///path (default 127.0.0.1:7420)")
      ->type_name("ADDR")
      ->envname("HOLDFAST_ADDRESS");
  app->add_option("--namespace", to->ns, "the keys' namespace (default: the daemon's)")
      ->type_name("NAME")
      ->envname("HOLDFAST_NAMESPACE")
      ->check(Definer::Check([](const std::string& text) { return CheckNamespace(text); }));
  app->add_flag("--json", to->json, "answers and errors as JSON, one object a line");
}

void DefineRun(CLI::App* app, RunOptions* to) {
  Definer define(app);
  define.Key(&to->key);
  define.MoreKeys(&to->more_keys);
  define.Mode(&to->mode);
  define.Duration("--wait", &to->wait, "how long to wait for the lock (default 5s; 0: not at all)");
  define.Duration("--lease", &to->lease,
                  "how long the lock outlives a silent holder (default: the daemon's, 30s)");
  define.Duration("--max-hold", &to->max_hold,
                  "the longest that it may be held (default: no limit)");
  define.Duration("--at-least", &to->at_least,
                  "keep the lock at least so long, so that clocks that differ start no second run");
  static const std::map<std::string, OnLost> kChoices = {
      {"term", OnLost::kTerm}, {"kill", OnLost::kKill}, {"continue", OnLost::kContinue}};
  app->add_option(
         "--on-lost", to->on_lost,
         "what becomes of the command when the lock is lost: term (and then kill; default), "
         "kill, or continue")
      ->type_name("WHAT")
      ->transform(CLI::CheckedTransformer(kChoices).description(""));
  app->add_option("--retry", to->retry, "run a command that fails again, up to N times")
      ->type_name("N")
      ->check(CLI::Range(0, kMaxRetries).description(""));
  app->add_option("--conflict-exit-code", to->conflict_exit_code,
                  "what to exit with when the lock cannot be had (default 124)")
      ->type_name("N")
      ->check(CLI::Range(0, 255).description(""));
  define.Note([to](std::string text) { to->note = std::move(text); },
              "what others see of the holder (default: user@host, process and program)");
  app->formatter(std::make_shared<RunFormatter>());
  app->footer(kRunFooter);
}

void DefineAcquire(CLI::App* app, AcquireOptions* to) {
  Definer define(app);
  define.Key(&to->key);
  define.MoreKeys(&to->more_keys);
  define.Mode(&to->mode);
  define.Duration("--wait", &to->wait, "how long to wait for the lock (default: not at all)");
  define.Duration("--lease", &to->lease,
                  "how long the lock lasts unless it is renewed (default: the daemon's, 30s)");
  define.Duration("--max-hold", &to->max_hold,
                  "the longest that it may be held (default: no limit)");
  define
      .Text("--owner", &to->owner,
            "who holds it: at least 16 bytes that nobody can guess (default: the daemon makes one)",
            "OWNER")
      ->check(Definer::Check([](const std::string& text) { return CheckOwner(text); }));
  define.Note([to](std::string text) { to->note = std::move(text); },
              "what others see of the holder");
}

void DefineRenew(CLI::App* app, RenewOptions* to) {
  Definer define(app);
  define.Key(&to->key);
  define.Hold(&to->owner, &to->hold_id);
  define.Duration("--lease", &to->lease, "how long it lasts from now on (default: as before)");
}

void DefineRelease(CLI::App* app, ReleaseOptions* to) {
  Definer define(app);
  define.Key(&to->key);
  define.Hold(&to->owner, &to->hold_id);
}

void DefineCheckToken(CLI::App* app, CheckTokenOptions* to) {
  Definer(app).Key(&to->key);
  app->add_option("TOKEN", to->token, "a fencing token, as a grant said")
      ->type_name("")
      ->required()
      ->check(CLI::Range(int64_t{1}, limits::kMaxToken).description(""));
  app->footer("Exits with 0 where the key is held under this token now, else with 125.");
}

void DefineCloseSession(CLI::App* app, CloseSessionOptions* to) {
  Definer define(app);
  define.Text("SESSION", &to->session_id, "its id, as `holdfast sessions` shows it", "")
      ->required()
      ->check(Definer::Check([](const std::string& text) {
        return CheckId(text, "session id", limits::kMaxSessionIdBytes);
      }));
}

void DefineForceRelease(CLI::App* app, ForceReleaseOptions* to) {
  Definer define(app);
  define.Key(&to->key);
  define.Text("--hold-id", &to->hold_id, "only this hold, as inspect --json shows it", "ID")
      ->check(Definer::Check([](const std::string& text) {
        return CheckId(text, "hold id", limits::kMaxHoldIdBytes);
      }));
  app->add_flag("--immediate", to->immediate,
                "do not wait until the holder has stopped: two may work for a while");
  define.Note([to](std::string text) { to->note = std::move(text); }, "why, for the daemon's log");
}

// Everything behind the first `--`; `arguments` keeps what is before it. nullopt: there is none.
std::optional<std::vector<std::string>> TakeCommand(std::vector<std::string>& arguments) {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return std::nullopt;
  std::vector<std::string> command(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

int Complain(std::ostream& err, const std::string& what, const std::string& about) {
  err << "holdfast: " << what << "\nSee `holdfast " << about << (about.empty() ? "" : " ")
      << "--help`.\n";
  return kExitUsage;
}

}  // namespace

std::variant<CommandLine, int> ParseCommandLine(std::vector<std::string> arguments,
                                                std::ostream& out, std::ostream& err) {
  CommandLine line;
  RunOptions run;
  AcquireOptions acquire;
  RenewOptions renew;
  ReleaseOptions release;
  InspectOptions inspect;
  ListOptions list;
  WatchOptions watch;
  CheckTokenOptions check_token;
  CloseSessionOptions close_session;
  ForceReleaseOptions force_release;

  CLI::App app(kAbout, "holdfast");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", HOLDFAST_VERSION);
  DefineGlobal(&app, &line.global);
  const auto command = [&](const char* name, const char* help) {
    return app.add_subcommand(name, help)->fallthrough();
  };
  CLI::App* const run_app = command("run", "hold a lock while a command runs");
  DefineRun(run_app, &run);
  CLI::App* const acquire_app =
      command("acquire", "take a lock that you renew and release yourself");
  DefineAcquire(acquire_app, &acquire);
  CLI::App* const renew_app = command("renew", "make an acquired lock last longer");
  DefineRenew(renew_app, &renew);
  CLI::App* const release_app = command("release", "give an acquired lock back");
  DefineRelease(release_app, &release);
  CLI::App* const inspect_app = command("inspect", "show who holds a lock");
  Definer(inspect_app).Key(&inspect.key);
  CLI::App* const list_app = command("ls", "list the locks that are held");
  list_app->add_option("PREFIX", list.prefix, "only keys that begin with it");
  CLI::App* const watch_app = command("watch", "show what happens to locks, as it happens");
  watch_app->add_option("PREFIX", watch.prefix, "only keys that begin with it");
  watch_app->footer(
      "Tells of all daemons on the same store. A line `gap` says that some events may be missing.");
  CLI::App* const check_token_app =
      command("check-token", "ask whether a fencing token is still the current one");
  DefineCheckToken(check_token_app, &check_token);
  CLI::App* const sessions_app = command("sessions", "list the clients of the daemon");
  CLI::App* const close_session_app =
      command("close-session", "end a client's session, and what it holds");
  DefineCloseSession(close_session_app, &close_session);
  CLI::App* const force_release_app =
      command("force-release", "take a lock away from whoever holds it");
  DefineForceRelease(force_release_app, &force_release);
  CLI::App* const ping_app = command("ping", "ask whether the daemon is there and can serve");

  auto behind_mark = TakeCommand(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& help) {
    return app.exit(help, out, err);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    return Complain(err, error.what(), chosen.empty() ? "" : chosen.front()->get_name());
  }
  if (run_app->parsed()) {
    if (!behind_mark.has_value() || behind_mark->empty()) {
      return Complain(err, "run needs a command: holdfast run KEY -- COMMAND...", "run");
    }
    run.command = *std::move(behind_mark);
    line.command = std::move(run);
    return line;
  }
  if (behind_mark.has_value()) return Complain(err, "only run takes a command after --", "");
  if (acquire_app->parsed()) line.command = std::move(acquire);
  if (renew_app->parsed()) line.command = std::move(renew);
  if (release_app->parsed()) line.command = std::move(release);
  if (inspect_app->parsed()) line.command = std::move(inspect);
  if (list_app->parsed()) line.command = std::move(list);
  if (watch_app->parsed()) line.command = std::move(watch);
  if (ping_app->parsed()) line.command = PingOptions();
  if (check_token_app->parsed()) line.command = std::move(check_token);
  if (sessions_app->parsed()) line.command = SessionsOptions();
  if (close_session_app->parsed()) line.command = std::move(close_session);
  if (force_release_app->parsed()) line.command = std::move(force_release);
  return line;
}

}  // namespace holdfast::cli
