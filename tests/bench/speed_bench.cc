// SPDX-License-Identifier: Apache-2.0
//
// Measures holdfastd beside what it is made of, in one run: see docs/performance.md. Ends with 0
// whatever the figures are, and with 1 if it could not measure them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/bench/figures.h"
#include "tests/bench/servers.h"

namespace {

using namespace holdfast::bench;

struct Arguments {
  int rounds = 5;
  int round_ms = 1000;
  int idle_sessions = 2000;
  std::string only;
  std::string json;
};

// build/bin/bench/this, build/bin/holdfastd
std::string DaemonProgram() {
  if (const char* folder = std::getenv("HOLDFAST_BIN")) return std::string(folder) + "/holdfastd";
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "holdfastd";
}

absl::Status Run(const Arguments& arguments) {
  const absl::StatusOr<std::unique_ptr<Servers>> servers = Servers::Start(DaemonProgram());
  if (!servers.ok()) return servers.status();
  Report report;
  Figures figures(**servers, absl::Milliseconds(arguments.round_ms), arguments.idle_sessions,
                  arguments.only, &report);
  for (int round = 1; round <= arguments.rounds; ++round) {
    std::fprintf(stderr, "round %d of %d\n", round, arguments.rounds);
    absl::Status status = figures.Round();
    if (!status.ok()) return status;
  }
  std::fputs(report.Table().c_str(), stdout);
  if (!arguments.json.empty()) {
    std::ofstream file(arguments.json);
    file << report.Json(arguments.rounds);
    file.close();
    if (!file) return absl::UnavailableError("cannot write " + arguments.json);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Measures holdfastd beside what it is made of. Starts the servers that it needs.");
  app.add_option("--rounds", arguments.rounds, "how often each figure is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--round-ms", arguments.round_ms, "how long a round's throughput is measured")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  app.add_option("--idle-sessions", arguments.idle_sessions, "how many idle sessions are opened")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--only", arguments.only, "only figures whose id (as in --json) begins so");
  app.add_option("--json", arguments.json, "a file that gets all figures, each round's too");
  CLI11_PARSE(app, argc, argv);

  const absl::Status status = Run(arguments);
  if (!status.ok()) {
    std::fprintf(stderr, "bench: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
