// SPDX-License-Identifier: Apache-2.0
#include "server/front/listen_socket.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace holdfast::server {
namespace {

constexpr absl::string_view kUnixScheme = "unix://";

std::string Errno(int error) { return std::strerror(error); }

// 0: somebody listens; else the error of connecting.
int TryToConnect(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(fd, generic, sizeof(address)) == 0) return 0;
  // Its line of connections is full: somebody listens.
  return errno == EAGAIN || errno == EINPROGRESS ? 0 : errno;
}

int TryToBind(const addrinfo& info) {
  const int fd = socket(info.ai_family, info.ai_socktype | SOCK_CLOEXEC, info.ai_protocol);
  if (fd < 0) return errno;
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd, info.ai_addr, info.ai_addrlen) != 0) return errno;
  return listen(fd, 1) == 0 ? 0 : errno;
}

}  // namespace

std::optional<std::string> UnixPath(absl::string_view address) {
  if (address.substr(0, kUnixScheme.size()) != kUnixScheme) return std::nullopt;
  return std::string(address.substr(kUnixScheme.size()));
}

absl::Status PrepareUnixSocket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError(absl::StrCat("a socket's path has at most ",
                                               sizeof(address.sun_path) - 1, " bytes, '", path,
                                               "' has ", path.size()));
  }
  const std::string folder = path.substr(0, std::max<size_t>(path.rfind('/'), 1));
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return absl::UnavailableError(
        absl::StrCat("the folder ", folder, " of the socket does not exist; create it first"));
  }
  if (lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(path, ": ", Errno(errno)));
  }
  if (!S_ISSOCK(found.st_mode)) {
    return absl::UnavailableError(
        absl::StrCat(path, " exists and is no socket; it was not touched"));
  }
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const int error = TryToConnect(address);
  if (error == 0) {
    return absl::UnavailableError(absl::StrCat("another process listens at ", path));
  }
  if (error != ECONNREFUSED || unlink(path.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("the old socket ", path, " cannot be taken over: ", Errno(error)));
  }
  return absl::OkStatus();
}

std::string WhyNotBound(absl::string_view address) {
  if (const std::optional<std::string> path = UnixPath(address)) {
    const std::string folder = path->substr(0, std::max<size_t>(path->rfind('/'), 1));
    return access(folder.c_str(), W_OK) == 0 ? "the socket cannot be created"
                                             : absl::StrCat(folder, ": ", Errno(errno));
  }
  const size_t colon = address.rfind(':');
  std::string host(address.substr(0, colon));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port(address.substr(colon + 1));
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return gai_strerror(error);
  }
  const auto freer = absl::MakeCleanup([found] { freeaddrinfo(found); });
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int error = TryToBind(*info);
    if (error == EADDRINUSE) return "another process listens there";
    if (error != 0) return Errno(error);
  }
  return "it cannot be bound";
}

}  // namespace holdfast::server
