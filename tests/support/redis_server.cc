// SPDX-License-Identifier: Apache-2.0
#include "tests/support/redis_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/clock.h"

extern char** environ;

namespace holdfast::testing {

RawRedis::RawRedis(const std::string& socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RawRedis::~RawRedis() {
  if (fd_ >= 0) close(fd_);
}

bool RawRedis::Fill() {
  pollfd ready = {fd_, POLLIN, 0};
  char chunk[65536];
  if (fd_ < 0 || poll(&ready, 1, 10'000) != 1) return false;
  const ssize_t n = read(fd_, chunk, sizeof chunk);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<size_t>(n));
  return true;
}

std::string RawRedis::ReadLine() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return "-no answer";
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::string RawRedis::ReadBytes(size_t n) {
  while (buffer_.size() < n + 2) {
    if (!Fill()) return "-no answer";
  }
  std::string bytes = buffer_.substr(0, n);
  buffer_.erase(0, n + 2);
  return bytes;
}

void RawRedis::ReadReply(RawReply* out) {
  const std::string line = ReadLine();
  int n = 0;
  switch (line.empty() ? '-' : line[0]) {
    case '*':
      if (!absl::SimpleAtoi(line.substr(1), &n)) n = 0;
      for (int i = 0; i < n; ++i) ReadReply(out);
      return;
    case '$':
      if (!absl::SimpleAtoi(line.substr(1), &n) || n < 0) return out->push_back("(nil)");
      return out->push_back(ReadBytes(static_cast<size_t>(n)));
    case '-':
      return out->push_back(line.empty() ? "-no answer" : line);
    default:
      return out->push_back(line.substr(1));
  }
}

RawReply RawRedis::Run(const std::vector<std::string>& args) {
  std::string wire = absl::StrCat("*", args.size(), "\r\n");
  for (const std::string& arg : args) absl::StrAppend(&wire, "$", arg.size(), "\r\n", arg, "\r\n");
  RawReply reply;
  if (send(fd_, wire.data(), wire.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(wire.size())) {
    return {"-no answer"};
  }
  ReadReply(&reply);
  return reply;
}

std::string RawRedis::Get(const std::vector<std::string>& args) {
  const RawReply reply = Run(args);
  return reply.empty() ? "" : reply[0];
}

std::unique_ptr<RedisServer> RedisServer::Start(std::vector<std::string> options) {
  std::string folder = absl::StrCat(getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp",
                                    "/holdfast-test-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  std::unique_ptr<RedisServer> server(new RedisServer(std::move(folder), std::move(options)));
  if (!server->Launch()) return nullptr;
  return server;
}

bool RedisServer::Launch() {
  std::vector<std::string> args = {
      "redis-server", "--port", "0",     "--unixsocket", socket_path(), "--save",        "",
      "--appendonly", "no",     "--dir", folder_,        "--logfile",   folder_ + "/log"};
  args.insert(args.end(), options_.begin(), options_.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  if (posix_spawnp(&pid_, "redis-server", nullptr, nullptr, argv.data(), environ) != 0)
    return false;
  const MachineClock clock;
  const BootTime limit = clock.Now() + absl::Seconds(10);
  while (clock.Now() < limit) {
    raw_ = std::make_unique<RawRedis>(socket_path());
    const std::string answer = raw_->connected() ? raw_->Get({"PING"}) : "";
    if (answer == "PONG" || absl::StartsWith(answer, "-NOAUTH")) return true;
    poll(nullptr, 0, 2);
  }
  return false;
}

void RedisServer::Kill() {
  raw_.reset();
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  unlink(socket_path().c_str());
}

RedisServer::~RedisServer() {
  Kill();
  unlink((folder_ + "/log").c_str());
  unlink((folder_ + "/dump.rdb").c_str());
  rmdir(folder_.c_str());
}

bool RedisServer::RestartEmpty() {
  Kill();
  return Launch();
}

void RedisServer::Stop() const { kill(pid_, SIGSTOP); }
void RedisServer::Continue() const { kill(pid_, SIGCONT); }

RawReply RedisServer::Run(const std::vector<std::string>& args) { return raw_->Run(args); }
std::string RedisServer::Get(const std::vector<std::string>& args) { return raw_->Get(args); }

}  // namespace holdfast::testing
