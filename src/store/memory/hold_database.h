// SPDX-License-Identifier: Apache-2.0
//
// The records of held keys in an LMDB file. Writes are transactions without
// fsync: the page cache keeps them when the daemon is killed, and what a crash
// of the machine leaves is not read again (state_folder.h), so nothing waits
// for a disk. One thread, one process: the folder's lock sees to that.
//
// The file is marked with the boot in which it was begun. It does not shrink.
#pragma once

#include <lmdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/base/names.h"
#include "src/store/memory/lock_record.h"
#include "src/store/memory/record_codec.h"

namespace holdfast::memory {

class HoldDatabase {
 public:
  // The new state of a key; null: it is gone.
  struct Change {
    const KeyName* name;
    const KeyRecord* record;
  };

  // Begins an empty file in place of what is there.
  static absl::StatusOr<std::unique_ptr<HoldDatabase>> Create(const std::string& path,
                                                              absl::string_view boot_id,
                                                              size_t max_bytes);
  // Reads the file of this boot. Any failure means that its records are not to be trusted.
  static absl::StatusOr<std::unique_ptr<HoldDatabase>> Load(const std::string& path,
                                                            absl::string_view boot_id,
                                                            size_t max_bytes,
                                                            std::vector<NamedRecord>* records);

  // All of it or nothing. RESOURCE_EXHAUSTED where file or disk are full.
  absl::Status Write(const std::vector<Change>& changes);

 private:
  struct CloseEnv {
    void operator()(MDB_env* env) const { mdb_env_close(env); }
  };
  using Env = std::unique_ptr<MDB_env, CloseEnv>;

  HoldDatabase(Env env, MDB_dbi dbi) : env_(std::move(env)), dbi_(dbi) {}
  static absl::StatusOr<std::unique_ptr<HoldDatabase>> Open(const std::string& path,
                                                            size_t max_bytes);
  absl::Status ReadAll(absl::string_view boot_id, std::vector<NamedRecord>* records);
  absl::Status Put(MDB_txn* txn, const Change& change);

  const Env env_;
  const MDB_dbi dbi_;
  // A name can be longer than an LMDB key: each key has a row number while it is held. Row 0 is the
  // mark of the boot.
  absl::flat_hash_map<KeyName, uint64_t> rows_;
  uint64_t next_row_ = 1;
};

}  // namespace holdfast::memory
