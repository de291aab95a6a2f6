// SPDX-License-Identifier: Apache-2.0
#include "client/cli/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "client/cli/exit_codes.h"
#include "client/cli/terminal.h"

namespace holdfast::cli {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the new process, which has one thread of a program with many: only calls that are safe there.
[[noreturn]] void Become(const ChildOptions& options, char* const* argv, char* const* envp,
                         pid_t parent, int error_fd) {
  setpgid(0, 0);
  if (options.dies_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitCannotRun);  // it died before the call above
  }
  if (options.lend_terminal) LendTerminal(getpid());
  signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &options.signal_mask, nullptr);
  execvpe(argv[0], argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_fd, &error, sizeof error);
  _exit(error == ENOENT ? kExitNotFound : kExitCannotRun);
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<std::optional<Child>> Child::Start(const ChildOptions& options, int* exec_errno) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const std::vector<char*> argv = Pointers(options.command);
  const std::vector<char*> envp = Pointers(options.environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    return absl::ErrnoToStatus(error, "cannot start a process");
  }
  if (pid == 0) Become(options, argv.data(), envp.data(), parent, ends[1]);
  // Both sides do it, so that neither has to wait for the other.
  setpgid(pid, pid);
  close(ends[1]);
  ssize_t got = 0;
  do {
    got = read(ends[0], exec_errno, sizeof *exec_errno);
  } while (got < 0 && errno == EINTR);
  close(ends[0]);
  if (got != static_cast<ssize_t>(sizeof *exec_errno)) return Child(pid);
  waitpid(pid, nullptr, 0);
  return std::optional<Child>();
}

Child::Change Child::Reap() {
  int status = 0;
  Change change = Change::kNone;
  for (pid_t pid = 0; (pid = waitpid(-pid_, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (pid != pid_) continue;
    if (WIFSTOPPED(status)) {
      change = WSTOPSIG(status) == SIGTSTP ? Change::kStopped : change;
      continue;
    }
    ended_ = true;
    exit_code_ = ExitCodeOf(status);
    change = Change::kEnded;
  }
  return change;
}

bool Child::IsGroupGone() const { return ended_ && kill(-pid_, 0) != 0 && errno == ESRCH; }

}  // namespace holdfast::cli
