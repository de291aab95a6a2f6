// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast::memory {
namespace {

constexpr size_t kMaxBytes = 65'536;

absl::Status Failed(absl::string_view doing, const std::string& path, int error) {
  const Reason reason =
      error == ENOSPC || error == EDQUOT ? Reason::kStoreOutOfMemory : Reason::kStoreError;
  return Fail(reason, "", absl::ErrnoToStatus(error, absl::StrCat(doing, " ", path)).message());
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status SyncFolder(const std::string& folder) {
  const Descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  if (directory.get() >= 0 && fsync(directory.get()) == 0) return absl::OkStatus();
  return Failed("cannot sync", folder, errno);
}

std::string ParentOf(const std::string& folder) {
  const size_t end = folder.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? end : folder.rfind('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// 0 or errno.
int WriteAndSync(const std::string& path, absl::string_view content) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) return errno;
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(file.get()) == 0 ? 0 : errno;
}

}  // namespace

absl::Status WriteDurably(const std::string& folder, const std::string& name,
                          absl::string_view content) {
  const std::string path = absl::StrCat(folder, "/", name);
  const std::string temporary = absl::StrCat(path, ".new");
  if (const int error = WriteAndSync(temporary, content); error != 0) {
    return Failed("cannot write", temporary, error);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return Failed("cannot replace", path, errno);
  return SyncFolder(folder);
}

absl::StatusOr<bool> MakeFolderDurably(const std::string& folder) {
  if (IsFolder(folder)) return false;
  const std::string parent = ParentOf(folder);
  if (!IsFolder(parent) && parent != folder) {
    if (auto made = MakeFolderDurably(parent); !made.ok()) return made;
  }
  if (mkdir(folder.c_str(), 0700) != 0) return Failed("cannot make", folder, errno);
  if (absl::Status status = SyncFolder(parent); !status.ok()) return status;
  return true;
}

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (file.get() < 0) return std::nullopt;
  std::string content(kMaxBytes, '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  content.resize(size);
  return content;
}

}  // namespace holdfast::memory
