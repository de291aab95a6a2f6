// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/hold_database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace holdfast::memory {
namespace {

absl::Status Failed(absl::string_view what, int code) {
  const Reason reason = code == MDB_MAP_FULL || code == ENOSPC || code == ENOMEM || code == EDQUOT
                            ? Reason::kStoreOutOfMemory
                            : Reason::kStoreError;
  return Fail(reason, "", absl::StrCat(what, ": ", mdb_strerror(code)));
}

struct AbortTxn {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};
using Txn = std::unique_ptr<MDB_txn, AbortTxn>;

int Begin(MDB_env* env, unsigned int flags, Txn& txn) {
  MDB_txn* raw = nullptr;
  const int code = mdb_txn_begin(env, nullptr, flags, &raw);
  txn.reset(raw);
  return code;
}

MDB_val Val(const void* data, size_t size) {
  return {.mv_size = size, .mv_data = const_cast<void*>(data)};
}

absl::string_view Text(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

int PutBytes(MDB_txn* txn, MDB_dbi dbi, uint64_t row, absl::string_view bytes) {
  MDB_val key = Val(&row, sizeof row);
  MDB_val value = Val(bytes.data(), bytes.size());
  return mdb_put(txn, dbi, &key, &value, 0);
}

// LMDB reads through a map of the file; a file that was cut short would end the process there.
bool IsWhole(MDB_env* env, const std::string& path) {
  MDB_envinfo info{};
  MDB_stat stat{};
  struct stat file {};
  if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &stat) != 0) return false;
  if (::stat(path.c_str(), &file) != 0) return false;
  return static_cast<uint64_t>(file.st_size) >= (info.me_last_pgno + 1) * stat.ms_psize;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HoldDatabase>> HoldDatabase::Open(const std::string& path,
                                                                 size_t max_bytes) {
  MDB_env* raw = nullptr;
  if (const int code = mdb_env_create(&raw); code != 0) return Failed("LMDB", code);
  Env env(raw);
  int code = mdb_env_set_mapsize(raw, max_bytes);
  if (code == 0) {
    code = mdb_env_open(raw, path.c_str(), MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK, 0600);
  }
  if (code != 0) return Failed(path, code);
  if (!IsWhole(raw, path)) return Failed(path, MDB_CORRUPTED);
  Txn txn;
  MDB_dbi dbi = 0;
  code = Begin(raw, 0, txn);
  if (code == 0) code = mdb_dbi_open(txn.get(), nullptr, MDB_INTEGERKEY, &dbi);
  if (code == 0) code = mdb_txn_commit(txn.release());
  if (code != 0) return Failed(path, code);
  return std::unique_ptr<HoldDatabase>(new HoldDatabase(std::move(env), dbi));
}

absl::StatusOr<std::unique_ptr<HoldDatabase>> HoldDatabase::Create(const std::string& path,
                                                                   absl::string_view boot_id,
                                                                   size_t max_bytes) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed(path, errno);
  auto database = Open(path, max_bytes);
  if (!database.ok()) return database;
  Txn txn;
  int code = Begin((*database)->env_.get(), 0, txn);
  if (code == 0) code = PutBytes(txn.get(), (*database)->dbi_, 0, boot_id);
  if (code == 0) code = mdb_txn_commit(txn.release());
  if (code != 0) return Failed(path, code);
  return database;
}

absl::StatusOr<std::unique_ptr<HoldDatabase>> HoldDatabase::Load(
    const std::string& path, absl::string_view boot_id, size_t max_bytes,
    std::vector<NamedRecord>* records) {
  if (access(path.c_str(), R_OK | W_OK) != 0) return Failed(path, errno);
  auto database = Open(path, max_bytes);
  if (!database.ok()) return database;
  absl::Status status = (*database)->ReadAll(boot_id, records);
  if (!status.ok()) return status;
  return database;
}

absl::Status HoldDatabase::ReadAll(absl::string_view boot_id, std::vector<NamedRecord>* records) {
  Txn txn;
  MDB_cursor* raw = nullptr;
  int code = Begin(env_.get(), MDB_RDONLY, txn);
  if (code == 0) code = mdb_cursor_open(txn.get(), dbi_, &raw);
  if (code != 0) return Failed("LMDB", code);
  const std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)> cursor(raw, mdb_cursor_close);

  MDB_val key{};
  MDB_val value{};
  bool marked = false;
  while ((code = mdb_cursor_get(raw, &key, &value, MDB_NEXT)) == 0) {
    uint64_t row = 0;
    if (key.mv_size != sizeof row) return Failed("a key", MDB_CORRUPTED);
    memcpy(&row, key.mv_data, sizeof row);
    if (row == 0) {
      marked = Text(value) == boot_id;
      continue;
    }
    auto named = DecodeRecord(Text(value));
    if (!named.has_value()) return Failed("a record", MDB_CORRUPTED);
    rows_[named->name] = row;
    next_row_ = row + 1;
    records->push_back(*std::move(named));
  }
  if (code != MDB_NOTFOUND) return Failed("LMDB", code);
  if (!marked) return Fail(Reason::kStoreError, "", "the holds are those of another boot");
  return absl::OkStatus();
}

absl::Status HoldDatabase::Write(const std::vector<Change>& changes) {
  Txn txn;
  if (const int code = Begin(env_.get(), 0, txn); code != 0) return Failed("LMDB", code);
  for (const Change& change : changes) {
    if (absl::Status status = Put(txn.get(), change); !status.ok()) return status;
  }
  if (const int code = mdb_txn_commit(txn.release()); code != 0) return Failed("LMDB", code);
  for (const Change& change : changes) {
    if (change.record == nullptr) rows_.erase(*change.name);
  }
  return absl::OkStatus();
}

absl::Status HoldDatabase::Put(MDB_txn* txn, const Change& change) {
  auto it = rows_.find(*change.name);
  if (change.record == nullptr) {
    if (it == rows_.end()) return absl::OkStatus();
    MDB_val key = Val(&it->second, sizeof it->second);
    const int code = mdb_del(txn, dbi_, &key, nullptr);
    // A row that a failed transaction was to write is known here only.
    return code == 0 || code == MDB_NOTFOUND ? absl::OkStatus() : Failed("LMDB", code);
  }
  if (it == rows_.end()) it = rows_.emplace(*change.name, next_row_++).first;
  const int code = PutBytes(txn, dbi_, it->second, EncodeRecord(*change.name, *change.record));
  return code == 0 ? absl::OkStatus() : Failed("LMDB", code);
}

}  // namespace holdfast::memory
