// SPDX-License-Identifier: Apache-2.0
//
// The folder in which the embedded store keeps what must outlive the daemon:
//
//   lock        flock'ed while a daemon uses the folder
//   state.json  format, boot id, the longest lease, an unfinished grace period
//   tokens      the end of the reserved range of fencing tokens
//   holds.lmdb  what is held (hold_database.h)
//
// Deadlines are points on the boot clock, so holds are read back only in the
// boot that wrote them; after another boot, and where something cannot be read,
// they are forgotten, and a grace period takes their place. state.json is
// written durably and before the holds file is begun anew, so a start that is
// killed halfway leaves what the next start takes for a reason to wait.
//
// Threading: none; one thread at a time. Calls block on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/store/memory/hold_database.h"
#include "src/store/memory/record_codec.h"

namespace holdfast::memory {

// The folder is used by this store only; it is created (0700) where missing.
struct FolderOptions {
  std::string path;
  // The longest lease that this daemon grants.
  absl::Duration max_lease;
  // Vouches that nobody holds: no grace period for what is not remembered.
  bool no_grace = false;
  // The running boot. Empty: unknown, which is never the same as before.
  std::string boot_id;
  // How big holds.lmdb may grow.
  size_t max_bytes = size_t{4} << 30;
};

// What a start finds.
struct FolderContents {
  std::vector<NamedRecord> records;  // may include holds that are over
  BootTime grace_until;              // in the past: none
  int64_t last_token = 0;            // a lower bound for new ones
  std::string story;                 // what was found and what that means, for the log
};

// The running boot's id, as the kernel says it; empty where it cannot be read.
std::string ReadBootId();

class StateFolder {
 public:
  // Takes the folder and reads it. Fails where another daemon has it, where it
  // cannot be made, read or written, and where its data has a newer format.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(FolderOptions options, BootTime now,
                                                           FolderContents* contents);
  ~StateFolder();
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  // Returns when it is on disk that tokens below `below` may have been given out.
  absl::Status ReserveTokens(int64_t below);
  // Holds survive the end of the process when this has returned.
  absl::Status Write(const std::vector<HoldDatabase::Change>& changes) {
    return holds_->Write(changes);
  }
  // The grace period is over, so leases longer than this daemon's are, too.
  absl::Status EndGrace();

 private:
  struct Header;

  StateFolder(FolderOptions options, int lock_fd, BootTime now);
  std::string PathOf(const char* name) const;
  // Sets `found`; kUnsupported where it is of a newer format, NOT_FOUND where it says nothing.
  absl::Status ReadHeader(Header* found) const;
  absl::Status WriteHeader(const Header& header) const;
  // Empty: the holds were read. Otherwise why not.
  std::string LoadHolds(const Header& found, std::vector<NamedRecord>* records);
  // Empty: read. Otherwise why not.
  std::string ReadTokens(int64_t* last_token) const;
  absl::Status BeginAnew();
  absl::Status GoOn(FolderContents* contents);

  const FolderOptions options_;
  const int lock_fd_;
  const BootTime opened_at_;
  std::unique_ptr<HoldDatabase> holds_;
};

}  // namespace holdfast::memory
