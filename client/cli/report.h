// SPDX-License-Identifier: Apache-2.0
//
// What the command line says: answers on standard output, everything else on
// standard error; for people, or as one JSON object a line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/options.h"
#include "holdfast/v1/lock.pb.h"

namespace holdfast::cli {

class Report {
 public:
  explicit Report(const GlobalOptions& global) : global_(global) {}

  // An answer: `object` or `text`, whichever was asked for.
  void Answer(const nlohmann::json& object, absl::string_view text) const;
  // What happens meanwhile, to people: "holdfast: ..."; as JSON {"event": ..., "message": ...}.
  void Note(absl::string_view event, absl::string_view message) const;
  // A failure and what to do about it. Answers the exit code.
  int Failure(const absl::Status& status) const;
  // The lock could not be had: who holds it. As JSON it is an answer.
  void Busy(const std::string& key, const v1::AcquireResponse& answer) const;

 private:
  const GlobalOptions& global_;
};

// What went wrong, and what to do next.
std::string Explain(const absl::Status& status, const std::string& address);
int ExitCodeOf(const absl::Status& status);

nlohmann::json ToJson(const v1::KeyState& state);
nlohmann::json ToJson(const v1::Holder& holder);
nlohmann::json ToJson(const v1::WaiterInLine& waiter);
nlohmann::json ToJson(const v1::Grant& grant);

// "held by 1a2b (backup, pid 7) for 3s, expires in 27s".
std::string Describe(const v1::Holder& holder);
// "5e6f waits (report, pid 8) for 2s, gives up in 3s".
std::string Describe(const v1::WaiterInLine& waiter);

}  // namespace holdfast::cli
