// SPDX-License-Identifier: Apache-2.0
#include "client/cli/supervisor.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/exit_codes.h"
#include "client/cli/terminal.h"
#include "client/lib/convert.h"
#include "src/base/durations.h"

namespace holdfast::cli {
namespace {

// After KILL: how long to wait for processes that the kernel does not let go, or whose parents do
// not take note of their end.
constexpr absl::Duration kGiveUpAfter = absl::Seconds(1);

absl::Duration ShortestLease(const std::vector<v1::Grant>& holds) {
  absl::Duration shortest = absl::InfiniteDuration();
  for (const v1::Grant& hold : holds) {
    shortest = std::min(shortest, client::FromMessage(hold.lease()));
  }
  return shortest;
}

}  // namespace

Supervisor::Supervisor(const Parts& parts, std::vector<v1::Grant> holds)
    : p_(parts),
      holds_(std::move(holds)),
      span_(StopSpan(ShortestLease(holds_), absl::Seconds(p_.session->opened().ttl().seconds()))) {}

const v1::Grant& Supervisor::Weakest() const {
  // A hold that is lost is valid until 0.
  return *std::min_element(holds_.begin(), holds_.end(), [&](const auto& a, const auto& b) {
    return p_.session->ValidUntil(a.hold_id()) < p_.session->ValidUntil(b.hold_id());
  });
}

Supervisor::Outcome Supervisor::RunOnce(const Environment& environment) {
  outcome_ = Outcome();
  ended_ = stopping_ = term_sent_ = kill_sent_ = false;
  has_terminal_ = OwnsTerminal();
  ChildOptions options{.command = p_.options->command,
                       .environment = environment,
                       .signal_mask = p_.signals->original_mask(),
                       .lend_terminal = has_terminal_,
                       .dies_with_parent = p_.guard != nullptr};
  int exec_errno = 0;
  auto started = Child::Start(options, &exec_errno);
  if (!started.ok() || !started->has_value()) {
    const std::string why =
        started.ok() ? strerror(exec_errno) : std::string(started.status().message());
    p_.report->Note("cannot_run", absl::StrCat("cannot run ", options.command[0], ": ", why));
    outcome_.exit_code = started.ok() && exec_errno == ENOENT ? kExitNotFound : kExitCannotRun;
    if (has_terminal_) TakeTerminalBack();
    return outcome_;
  }
  child_ = **started;
  outcome_.started = true;
  if (p_.guard != nullptr) p_.guard->Watch(child_->pid());
  if (has_terminal_) LendTerminal(child_->pid());

  for (;;) {
    MindHold(clock_.Now());
    TakeSignals();
    if (IsOver(clock_.Now())) break;
    Wait(NextWake());
  }
  if (p_.guard != nullptr) {
    p_.guard->Watch(0);
    p_.guard->SetDeadline(BootTime::Infinite());
  }
  if (has_terminal_) TakeTerminalBack();
  outcome_.exit_code = child_->exit_code();
  return outcome_;
}

void Supervisor::MindHold(BootTime now) {
  MindConnection(now);
  if (stopping_) return GoOnStopping(now);
  const std::string& weakest = Weakest().hold_id();
  const std::optional<client::Loss> loss = p_.session->LossOf(weakest);
  if (loss.has_value()) {
    BeginToStop(now, PlanStopNow(now, valid_until_, span_), WhyLost(loss));
    return;
  }
  valid_until_ = p_.session->ValidUntil(weakest);
  plan_ = PlanStop(valid_until_, span_);
  if (now >= StopAt()) {
    BeginToStop(now, plan_, WhyLost(loss));
  } else if (p_.guard != nullptr) {
    p_.guard->SetDeadline(plan_.kill_at);
  }
}

void Supervisor::BeginToStop(BootTime now, const StopTimes& plan, const std::string& why) {
  outcome_.lost = true;
  if (p_.options->on_lost == OnLost::kContinue) {
    if (!said_lost_) {
      p_.report->Note("lost", absl::StrCat("lost the lock ", Weakest().key(), " (", why,
                                           "): the command goes on without it"));
    }
    said_lost_ = true;
    return;
  }
  p_.report->Note("lost", absl::StrCat("lost the lock ", Weakest().key(), " (", why,
                                       "): stopping the command"));
  stopping_ = true;
  plan_ = plan;
  if (p_.options->on_lost == OnLost::kKill) plan_.kill_at = now;
  p_.guard->SetDeadline(plan_.kill_at);
  GoOnStopping(now);
}

void Supervisor::GoOnStopping(BootTime now) {
  if (now >= plan_.kill_at && !kill_sent_) {
    child_->SignalGroup(SIGKILL);
    kill_sent_ = true;
  }
  if (!term_sent_ && !kill_sent_) {
    child_->SignalGroup(SIGTERM);
    child_->SignalGroup(SIGCONT);  // a stopped process hears TERM only then
  }
  term_sent_ = true;
}

// A broken connection is no loss yet: the store keeps the hold until its lease ends.
void Supervisor::MindConnection(BootTime now) {
  const absl::Status end = p_.session->end_status();
  if (end.ok() || said_disconnected_ || stopping_) return;
  if (p_.session->LossOf(Weakest().hold_id()).has_value()) return;
  said_disconnected_ = true;
  const absl::Duration left = std::max(valid_until_ - now, absl::ZeroDuration());
  p_.report->Note("disconnected",
                  absl::StrCat("the connection to the daemon ended (", end.message(),
                               "); the lock ends in ", DurationText(left)));
}

std::string Supervisor::WhyLost(const std::optional<client::Loss>& loss) const {
  if (loss.has_value() && loss->told && p_.session->end_status().ok()) {
    const std::string& name = v1::LossReason_Name(loss->reason);
    return std::string(absl::StripPrefix(name, "LOSS_REASON_"));
  }
  if (const absl::Status end = p_.session->end_status(); !end.ok()) {
    return said_disconnected_ ? "no connection to the daemon" : std::string(end.message());
  }
  if (loss.has_value()) return "its time is over and was not extended";
  return "its time is nearly over and was not extended";
}

void Supervisor::TakeSignals() {
  while (const std::optional<int> signal = p_.signals->Take()) {
    switch (*signal) {
      case SIGCHLD:
        OnChild();
        break;
      case SIGCONT:
        if (!has_terminal_ || OwnsTerminal()) {
          if (has_terminal_) LendTerminal(child_->pid());
          child_->SignalGroup(SIGCONT);
        }
        break;
      case SIGUSR1:
      case SIGUSR2:
        child_->Signal(*signal);
        break;
      default:
        outcome_.interrupted = true;
        child_->SignalGroup(*signal);
    }
  }
}

void Supervisor::OnChild() {
  switch (child_->Reap()) {
    case Child::Change::kNone:
      return;
    case Child::Change::kEnded:
      ended_ = true;
      return;
    case Child::Change::kStopped:
      // Ctrl-Z: stop as well, so that the shell goes on. Whether the lock survived is looked at
      // first when this process continues; until then the guard does.
      if (!has_terminal_) return;
      TakeTerminalBack();
      p_.report->Note("stopped",
                      absl::StrCat("stopped; the lock is lost unless the command goes on within ",
                                   DurationText(valid_until_ - clock_.Now())));
      raise(SIGSTOP);
  }
}

bool Supervisor::IsOver(BootTime now) const {
  if (!ended_) return false;
  if (!stopping_ || child_->IsGroupGone()) return true;
  return kill_sent_ && now >= plan_.kill_at + kGiveUpAfter;
}

BootTime Supervisor::NextWake() const {
  if (stopping_) return kill_sent_ ? plan_.kill_at + kGiveUpAfter : plan_.kill_at;
  if (said_lost_) return BootTime::Infinite();
  return StopAt();
}

BootTime Supervisor::StopAt() const {
  switch (p_.options->on_lost) {
    case OnLost::kTerm:
      return plan_.term_at;
    case OnLost::kKill:
      return plan_.kill_at;
    case OnLost::kContinue:
      return valid_until_;
  }
  return plan_.term_at;
}

void Supervisor::Wait(BootTime until) {
  p_.wake->Arm(until);
  pollfd fds[] = {{.fd = p_.signals->fd(), .events = POLLIN, .revents = 0},
                  {.fd = p_.wake->timer_fd(), .events = POLLIN, .revents = 0},
                  {.fd = p_.wake->wake_fd(), .events = POLLIN, .revents = 0}};
  poll(fds, 3, -1);
  p_.wake->Drain();
}

}  // namespace holdfast::cli
