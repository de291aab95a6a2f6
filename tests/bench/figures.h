// SPDX-License-Identifier: Apache-2.0
//
// Which figures there are, and one round of all of them. docs/performance.md says what each means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "holdfast/v1/types.pb.h"
#include "tests/bench/report.h"
#include "tests/bench/servers.h"

namespace holdfast::bench {

class Figures {
 public:
  // Adds its figures to `report`; both outlive it. Throughput is measured for `span`, latency for
  // half of it. Steps whose first figure's id does not begin with `only` are left out.
  Figures(const Servers& servers, absl::Duration span, int idle_sessions, std::string only,
          Report* report);

  // Measures each once, values and their floors side by side.
  absl::Status Round();

 private:
  bool Leaves(absl::string_view id) const { return !absl::StartsWith(id, only_); }
  void AddPairs(const char* id, const char* name, int in_flight, const RedisPlace& place,
                const DaemonProcess& daemon, const std::string& address, Figure::Wanted wanted);
  void AddEmbeddedPairs(int in_flight);
  void AddHandoff();
  void AddCrowds();
  void AddCrowd(const std::string& id, const std::string& name, std::vector<std::string> addresses,
                v1::Ordering ordering, double bound);
  void AddIdleSessions();
  void AddAlone(const char* id, const char* name, const std::string& address, bool unary);

  const Servers& servers_;
  const absl::Duration span_;
  const int idle_sessions_;
  const std::string only_;
  Report* const report_;
  std::vector<std::function<absl::Status()>> steps_;
};

}  // namespace holdfast::bench
