// SPDX-License-Identifier: Apache-2.0
//
// Runs a command under a hold, and sees to it that nothing of the command is
// left when the hold's validity ends. Whenever it wakes, it looks at the hold
// first: a process that was stopped for a while has no other way to know.
//
// Threading: the main thread only. The session wakes it through `wake`.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/child.h"
#include "client/cli/guard.h"
#include "client/cli/nesting.h"
#include "client/cli/options.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "client/cli/stop_plan.h"
#include "client/lib/boot_timer.h"
#include "client/lib/session.h"

namespace holdfast::cli {

class Supervisor {
 public:
  // How a run of the command ended.
  struct Outcome {
    int exit_code = 0;
    bool started = false;      // otherwise it cannot be run
    bool lost = false;         // the hold was over, or about to be, before the command was
    bool interrupted = false;  // a signal asked to end it
  };

  struct Parts {
    const RunOptions* options;
    const Report* report;
    Signals* signals;
    client::Session* session;
    client::BootTimer* wake;
    Guard* guard;  // null: with --on-lost=continue
  };

  // What `parts` points to must outlive the supervisor.
  // `holds`: at least one; the end of one is the end of all.
  Supervisor(const Parts& parts, std::vector<v1::Grant> holds);

  Outcome RunOnce(const Environment& environment);

 private:
  // Starts to stop the command, or goes on with it, if that is due.
  void MindHold(BootTime now);
  void BeginToStop(BootTime now, const StopTimes& plan, const std::string& why);
  void GoOnStopping(BootTime now);
  void MindConnection(BootTime now);
  // The first hold that is lost, or whose time is over first.
  const v1::Grant& Weakest() const;
  std::string WhyLost(const std::optional<client::Loss>& loss) const;
  void TakeSignals();
  void OnChild();
  bool IsOver(BootTime now) const;
  BootTime NextWake() const;
  // When a hold that nobody declares lost has to be given up.
  BootTime StopAt() const;
  void Wait(BootTime until);

  const Parts p_;
  const std::vector<v1::Grant> holds_;
  const absl::Duration span_;
  const MachineClock clock_;
  std::optional<Child> child_;
  bool has_terminal_ = false;
  bool ended_ = false;
  Outcome outcome_;

  BootTime valid_until_;  // as last known while it was held
  StopTimes plan_;
  bool stopping_ = false;
  bool term_sent_ = false;
  bool kill_sent_ = false;
  bool said_lost_ = false;
  bool said_disconnected_ = false;
};

}  // namespace holdfast::cli
