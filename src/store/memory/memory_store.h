// SPDX-License-Identifier: Apache-2.0
//
// The embedded store: a lock table (lock_table.h) in the daemon itself, with a
// state folder (state_folder.h) so that what is held outlives the daemon.
//
// Each Flush carries out what was submitted, writes what changed in one
// transaction, and only then answers. Where it cannot be written (disk full),
// the whole batch is undone and answered kOutOfMemory.
//
// After a start nothing is granted for the longest lease (InGrace) where holds
// may be valid that the store does not know: another boot of the machine, an
// unreadable file, no folder. Not where this start made the folder, nor where
// the folder is of this boot: its holds are taken over as they are.
#pragma once

#include <uv.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/store/store.h"

namespace holdfast {

struct MemoryStoreOptions {
  // Where to keep the state; empty: nowhere, so every start has a grace period.
  std::string folder;
  // The longest lease that the daemon grants: how long a grace period lasts.
  absl::Duration max_lease;
  // The operator vouches that nobody holds what this start does not know.
  bool no_grace = false;
  // Both must outlive the store.
  const Clock* clock = nullptr;
  const WallClock* wall_clock = nullptr;
  // For tests: the running boot's id (empty: the kernel's), and how big the file of holds may grow.
  std::string boot_id;
  size_t max_bytes = size_t{4} << 30;
};

// `loop` must outlive the store; its thread is the store's. Closing the store's timer takes one
// more turn of the loop after Stop().
std::unique_ptr<Store> MakeMemoryStore(MemoryStoreOptions options, uv_loop_t* loop);

}  // namespace holdfast
