// SPDX-License-Identifier: Apache-2.0
//
// run: take the lock, run the command under it, give the lock back.
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/nesting.h"
#include "client/cli/report.h"
#include "client/cli/several.h"
#include "client/cli/signals.h"
#include "client/cli/supervisor.h"
#include "client/lib/convert.h"
#include "client/lib/endpoint.h"
#include "client/lib/session.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast::cli {
namespace {

using client::Session;
using client::ToMessage;

// How long a daemon may take for an answer.
constexpr absl::Duration kPatience = absl::Seconds(5);

// Of the command's words only the program: its arguments may be secrets, and notes are for
// everybody.
std::string DefaultNote(const std::vector<std::string>& command) {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  const passwd* const user = getpwuid(geteuid());
  const std::string program = command[0].substr(command[0].rfind('/') + 1);
  const std::string note =
      absl::StrCat(user != nullptr ? user->pw_name : absl::StrCat(geteuid()).c_str(), "@", host,
                   " pid ", getpid(), " ", program);
  return IsUtf8(note) ? note.substr(0, limits::kMaxNoteBytes) : absl::StrCat("pid ", getpid());
}

// Of the keys that are held around this process already, all must have one owner; empty: none is.
absl::StatusOr<std::string> OwnerOf(const GlobalOptions& global, const RunOptions& options) {
  const Environment environment = CurrentEnvironment();
  std::string owner = OwnerAround(environment, {global.ns, options.key});
  for (const std::string& key : options.more_keys) {
    const std::string around = OwnerAround(environment, {global.ns, key});
    if (owner.empty()) owner = around;
    if (around.empty() || around == owner) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "different runs around this one hold ", key,
        " and another of its keys: it would wait for itself; take them together there, too"));
  }
  return owner;
}

v1::AcquireRequest RequestFor(const GlobalOptions& global, const RunOptions& options,
                              const std::string& owner) {
  v1::AcquireRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  SetMode(options.mode, request);
  request.set_owner(owner);
  request.set_note(options.note.value_or(DefaultNote(options.command)));
  *request.mutable_wait() = ToMessage(options.wait);
  if (options.lease.has_value()) *request.mutable_lease() = ToMessage(*options.lease);
  *request.mutable_max_hold() = ToMessage(options.max_hold);
  *request.mutable_min_hold() = ToMessage(options.at_least);
  return request;
}

struct Attempt {
  std::unique_ptr<Session> session;
  absl::StatusOr<Taken> answer = absl::UnavailableError("no answer");
};

void TakeLock(const GlobalOptions& global, const RunOptions& options, client::BootTimer* wake,
              Attempt* attempt) {
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) {
    attempt->answer = channel.status();
    return;
  }
  client::SessionOptions session_options;
  session_options.client_name = "holdfast run";
  session_options.patience = kPatience;
  session_options.on_event = [wake, report = Report(global)](const client::SessionEvent& event) {
    if (event.kind == client::SessionEvent::Kind::kDraining) {
      report.Note("draining", absl::StrCat("the daemon shuts down: the lock is lost in ",
                                           DurationText(event.limit)));
    }
    wake->Wake();
  };
  auto session = Session::Open(*channel, session_options);
  if (!session.ok()) {
    attempt->answer = session.status();
    return;
  }
  const absl::StatusOr<std::string> owner = OwnerOf(global, options);
  if (!owner.ok()) {
    attempt->answer = owner.status();
    return;
  }
  attempt->session = *std::move(session);
  attempt->answer =
      Take(*attempt->session, RequestFor(global, options, *owner), options.mode, options.more_keys);
}

// In a thread of its own, so that signals can end the wait. They end the process then: the
// connection closes, and the daemon takes the waiter out of the line, or the grant back.
Attempt TakeLockOrDie(const GlobalOptions& global, const RunOptions& options, Signals& signals,
                      client::BootTimer* wake) {
  Attempt attempt;
  std::atomic<bool> done = false;
  std::thread taker([&] {
    TakeLock(global, options, wake, &attempt);
    done = true;
    wake->Wake();
  });
  while (!done) {
    pollfd fds[] = {{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                    {.fd = wake->wake_fd(), .events = POLLIN, .revents = 0}};
    poll(fds, 2, -1);
    wake->Drain();
    while (const std::optional<int> signal = signals.Take()) {
      if (*signal != SIGCHLD && *signal != SIGCONT) DieOf(*signal);
    }
  }
  taker.join();
  return attempt;
}

// Runs the command as often as it may be run. Answers the exit code, and whether the lock was lost.
Supervisor::Outcome RunUnderLock(Supervisor& supervisor, const RunOptions& options,
                                 const Report& report, const Environment& environment) {
  Supervisor::Outcome outcome;
  for (int retries = 0;; ++retries) {
    outcome = supervisor.RunOnce(environment);
    const bool may_retry = outcome.started && outcome.exit_code != 0 && !outcome.lost &&
                           !outcome.interrupted && retries < options.retry;
    if (!may_retry) return outcome;
    report.Note("retry",
                absl::StrCat("the command failed with ", outcome.exit_code, "; running it again (",
                             retries + 1, " of ", options.retry, ")"));
  }
}

// Gives the hold back. Answers whether it was still there.
bool GiveBack(Session& session, const std::string& hold_id, bool lost, const Report& report) {
  const auto loss = session.LossOf(hold_id);
  if (loss.has_value() && loss->told) session.LostAck(hold_id).IgnoreError();
  // Where the daemon fell silent there is nobody to give it back to but by ending the session; that
  // also gives back the others of several.
  if (loss.has_value() || lost) return false;
  const auto released = session.Release(hold_id);
  if (released.ok()) return true;
  const Reason reason = ReasonOf(released.status());
  if (reason == Reason::kNotOwner || reason == Reason::kLeaseExpired) return false;
  report.Note("not_released",
              absl::StrCat("could not give the lock back (", released.status().message(),
                           "): it ends with its lease"));
  return true;
}

}  // namespace

int Execute(const GlobalOptions& global, const RunOptions& options) {
  const Report report(global);
  Signals signals;  // before anything starts a thread
  // What the command leaves behind when it is stopped is waited for, too.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  client::BootTimer wake;
  Attempt attempt = TakeLockOrDie(global, options, signals, &wake);
  if (!attempt.answer.ok()) return report.Failure(attempt.answer.status());
  const std::vector<v1::Grant>& grants = attempt.answer->grants;
  if (grants.empty()) {
    report.Busy(attempt.answer->busy_key, attempt.answer->refusal);
    return options.conflict_exit_code;
  }

  std::optional<Guard> guard;
  if (options.on_lost != OnLost::kContinue) {
    auto started = Guard::Start();
    if (!started.ok()) return report.Failure(started.status());
    guard.emplace(*std::move(started));
  }
  Supervisor supervisor({.options = &options,
                         .report = &report,
                         .signals = &signals,
                         .session = attempt.session.get(),
                         .wake = &wake,
                         .guard = guard.has_value() ? &*guard : nullptr},
                        grants);
  std::vector<LockAround> locks;
  for (const v1::Grant& grant : grants) {
    locks.push_back({{global.ns, grant.key()}, grant.owner(), grant.fencing_token()});
  }
  const Environment environment = EnvironmentInside(CurrentEnvironment(), locks);
  const Supervisor::Outcome outcome = RunUnderLock(supervisor, options, report, environment);
  guard.reset();
  bool all_there = true;
  for (const v1::Grant& grant : grants) {
    if (GiveBack(*attempt.session, grant.hold_id(), outcome.lost, report)) continue;
    all_there = false;
    if (outcome.lost || options.on_lost == OnLost::kContinue) continue;
    report.Note("lost",
                absl::StrCat("the lock ", grant.key(), " was lost before the command had ended"));
  }
  if (options.on_lost == OnLost::kContinue) return outcome.exit_code;
  return outcome.lost || !all_there ? kExitLost : outcome.exit_code;
}

}  // namespace holdfast::cli
