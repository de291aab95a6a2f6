// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/base/durations.h"
#include "src/base/limits.h"
#include "src/base/status.h"
#include "src/store/memory/durable_file.h"

namespace holdfast::memory {
namespace {

using nlohmann::json;

constexpr int64_t kFormat = 1;
constexpr char kHeader[] = "state.json";
constexpr char kTokens[] = "tokens";
constexpr char kHolds[] = "holds.lmdb";

std::optional<int64_t> Number(const json& object, const char* field) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<int64_t>();
}

absl::StatusOr<int> LockFolder(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Fail(Reason::kStoreError, "store",
                absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path)).message());
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  close(fd);
  if (error == EWOULDBLOCK) {
    return Fail(Reason::kStoreError, "store",
                absl::StrCat("another holdfastd uses the state folder ", folder,
                             ": stop it, or give this one a folder of its own"));
  }
  return Fail(Reason::kStoreError, "store",
              absl::ErrnoToStatus(error, absl::StrCat("cannot lock ", path)).message());
}

}  // namespace

struct StateFolder::Header {
  std::string boot_id;
  BootTime opened_at;
  BootTime grace_until;
  absl::Duration max_lease;
};

std::string ReadBootId() {
  const std::optional<std::string> id = ReadSmallFile("/proc/sys/kernel/random/boot_id");
  return std::string(absl::StripSuffix(id.value_or(""), "\n"));
}

StateFolder::StateFolder(FolderOptions options, int lock_fd, BootTime now)
    : options_(std::move(options)), lock_fd_(lock_fd), opened_at_(now) {}

StateFolder::~StateFolder() {
  holds_.reset();
  close(lock_fd_);
}

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Open(FolderOptions options, BootTime now,
                                                               FolderContents* contents) {
  const absl::StatusOr<bool> made = MakeFolderDurably(options.path);
  if (!made.ok()) return made.status();
  const absl::StatusOr<int> lock_fd = LockFolder(options.path);
  if (!lock_fd.ok()) return lock_fd.status();
  std::unique_ptr<StateFolder> folder(new StateFolder(std::move(options), *lock_fd, now));
  absl::Status status;
  if (*made) {
    contents->story = "a new state folder";
    status = folder->BeginAnew();
  } else {
    status = folder->GoOn(contents);
  }
  if (!status.ok()) return status;
  return folder;
}

absl::Status StateFolder::BeginAnew() {
  auto holds = HoldDatabase::Create(PathOf(kHolds), options_.boot_id, options_.max_bytes);
  if (!holds.ok()) return holds.status();
  holds_ = *std::move(holds);
  // The header comes last: a folder without one was not finished, and gets a grace period.
  return WriteHeader({.boot_id = options_.boot_id,
                      .opened_at = opened_at_,
                      .grace_until = BootTime(),
                      .max_lease = options_.max_lease});
}

absl::Status StateFolder::GoOn(FolderContents* contents) {
  Header found;
  absl::Status header_status = ReadHeader(&found);
  if (ReasonOf(header_status) == Reason::kUnsupported) return header_status;

  std::string loss = header_status.ok() ? LoadHolds(found, &contents->records)
                                        : std::string(header_status.message());
  const bool keep_holds = loss.empty();
  const std::string token_loss = ReadTokens(&contents->last_token);
  if (keep_holds) loss = token_loss;
  for (const NamedRecord& named : contents->records) {
    contents->last_token = std::max(contents->last_token, named.record.token);
  }

  const absl::Duration longest = std::max(found.max_lease, options_.max_lease);
  if (!options_.no_grace) {
    contents->grace_until = loss.empty() ? found.grace_until : opened_at_ + longest;
  }
  contents->story =
      loss.empty() ? absl::StrCat(contents->records.size(), " keys as they were left") : loss;
  // A longer lease than ours may live on in what was kept, or behind a grace period.
  const bool longer = !contents->records.empty() || contents->grace_until > opened_at_;
  absl::Status status = WriteHeader({.boot_id = options_.boot_id,
                                     .opened_at = opened_at_,
                                     .grace_until = contents->grace_until,
                                     .max_lease = longer ? longest : options_.max_lease});
  if (!status.ok() || keep_holds) return status;
  auto holds = HoldDatabase::Create(PathOf(kHolds), options_.boot_id, options_.max_bytes);
  if (!holds.ok()) return holds.status();
  holds_ = *std::move(holds);
  return absl::OkStatus();
}

std::string StateFolder::LoadHolds(const Header& found, std::vector<NamedRecord>* records) {
  if (options_.boot_id.empty() || found.boot_id != options_.boot_id) {
    return "another boot of the machine left the folder: what was held then is forgotten";
  }
  if (found.opened_at > opened_at_) {
    return "the boot clock is behind the folder's: what was held is forgotten";
  }
  auto holds = HoldDatabase::Load(PathOf(kHolds), options_.boot_id, options_.max_bytes, records);
  if (!holds.ok()) {
    records->clear();
    return absl::StrCat("what was held cannot be read: ", holds.status().message());
  }
  holds_ = *std::move(holds);
  return "";
}

std::string StateFolder::ReadTokens(int64_t* last_token) const {
  const std::optional<std::string> text = ReadSmallFile(PathOf(kTokens));
  int64_t below = 0;
  if (text.has_value() && absl::SimpleAtoi(*text, &below) && below > 0 &&
      below <= limits::kMaxToken) {
    *last_token = below - 1;
    return "";
  }
  // Nothing was granted yet where no range was ever reserved.
  if (access(PathOf(kTokens).c_str(), F_OK) != 0 && errno == ENOENT) return "";
  return "the reserved fencing tokens cannot be read";
}

absl::Status StateFolder::ReadHeader(Header* found) const {
  const std::optional<std::string> text = ReadSmallFile(PathOf(kHeader));
  if (!text.has_value()) return absl::NotFoundError("the folder was there, but has no state.json");
  const json object = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  absl::Status unreadable = absl::NotFoundError("state.json cannot be read");
  if (!object.is_object()) return unreadable;
  const auto format = Number(object, "format");
  if (format.has_value() && *format > kFormat) {
    return Fail(Reason::kUnsupported, "store",
                absl::StrCat("the state folder ", options_.path, " has format ", *format,
                             ", this holdfastd knows up to ", kFormat, ": use the newer one"));
  }
  const auto boot = object.find("boot_id");
  const auto opened = Number(object, "opened_at_ns");
  const auto grace = Number(object, "grace_until_ns");
  const auto lease = Number(object, "max_lease_ms");
  if (format != kFormat || boot == object.end() || !boot->is_string() || !opened || !grace ||
      !lease) {
    return unreadable;
  }
  found->boot_id = boot->get_ref<const std::string&>();
  found->opened_at = BootTime::FromNanos(*opened);
  found->grace_until = BootTime::FromNanos(*grace);
  found->max_lease =
      std::clamp(absl::Milliseconds(*lease), absl::ZeroDuration(), limits::kMaxMaxLease);
  return absl::OkStatus();
}

absl::Status StateFolder::WriteHeader(const Header& header) const {
  const json object = {{"format", kFormat},
                       {"boot_id", header.boot_id},
                       {"opened_at_ns", header.opened_at.nanos()},
                       {"grace_until_ns", header.grace_until.nanos()},
                       {"max_lease_ms", absl::ToInt64Milliseconds(header.max_lease)}};
  return WriteDurably(options_.path, kHeader, object.dump() + "\n");
}

absl::Status StateFolder::ReserveTokens(int64_t below) {
  return WriteDurably(options_.path, kTokens, absl::StrCat(below, "\n"));
}

absl::Status StateFolder::EndGrace() {
  return WriteHeader({.boot_id = options_.boot_id,
                      .opened_at = opened_at_,
                      .grace_until = BootTime(),
                      .max_lease = options_.max_lease});
}

std::string StateFolder::PathOf(const char* name) const {
  return absl::StrCat(options_.path, "/", name);
}

}  // namespace holdfast::memory
