// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

extern char** environ;

namespace holdfast::bench {
namespace {

constexpr int kStartLimitMs = 10'000;
constexpr size_t kListens = 2;

// One `serving: ADDRESS` line for each --listen.
absl::StatusOr<std::vector<std::string>> ReadAddresses(int fd, const std::string& log) {
  std::string text;
  char chunk[4096];
  for (;;) {
    std::vector<std::string> addresses;
    for (absl::string_view line : absl::StrSplit(text.substr(0, text.rfind('\n') + 1), '\n')) {
      constexpr absl::string_view kMark = "serving: ";
      if (absl::StartsWith(line, kMark)) addresses.emplace_back(line.substr(kMark.size()));
    }
    if (addresses.size() == kListens) return addresses;
    pollfd ready = {fd, POLLIN, 0};
    const ssize_t n =
        poll(&ready, 1, kStartLimitMs) == 1 ? read(fd, chunk, sizeof chunk) : ssize_t{0};
    if (n <= 0) return absl::UnavailableError(absl::StrCat("holdfastd does not start; see ", log));
    text.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(const std::string& program,
                                                                    const std::string& folder,
                                                                    const std::string& store) {
  const std::string log = folder + "/holdfastd.log";
  std::vector<std::string> args = {program,
                                   "--store=" + store,
                                   "--listen=unix://" + folder + "/holdfast.sock",
                                   "--listen=127.0.0.1:0",
                                   "--no-grace",
                                   "--log-level=warn"};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_CREAT | O_WRONLY, 0600);
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess);
  const int error =
      posix_spawn(&daemon->pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  daemon->out_ = ends[0];
  if (error != 0) {
    daemon->pid_ = -1;
    return absl::UnavailableError(absl::StrCat("cannot run ", program));
  }
  absl::StatusOr<std::vector<std::string>> addresses = ReadAddresses(ends[0], log);
  if (!addresses.ok()) return addresses.status();
  daemon->addresses_ = *std::move(addresses);
  return daemon;
}

DaemonProcess::~DaemonProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
}

double DaemonProcess::ResidentKb() const {
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string word; status >> word;) {
    double kb = 0;
    if (word == "VmRSS:" && status >> kb) return kb;
  }
  return 0;
}

double DaemonProcess::CpuSeconds() const {
  std::ifstream stat(absl::StrCat("/proc/", pid_, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(stat)), {});
  // Counted from behind the name, which may contain anything: user and system time.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace holdfast::bench
