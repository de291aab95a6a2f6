// SPDX-License-Identifier: Apache-2.0
//
// What is settled with a server before it is used: who it is (a replica is
// refused), that nothing of the connection before is still carried out, that it
// knows our scripts, and what its data's marker says about grace.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "src/store/redis/connection.h"
#include "src/store/redis/key_layout.h"
#include "src/store/redis/log.h"
#include "src/store/redis/script_set.h"
#include "src/store/redis/server_info.h"

namespace holdfast::redis {

class Opening {
 public:
  struct Outcome {
    std::string incarnation;   // what every writing script carries
    absl::Duration grace;      // what remains of it; 0: none
    std::string why;           // of the grace, or of there being none
    bool same_server = false;  // as the time before
  };
  // A failure's message says why the server cannot be used; the caller breaks the connection.
  using Done = std::function<void(absl::StatusOr<Outcome>)>;

  // Everything outlives the Opening. `no_grace` holds for the first success only.
  Opening(Connection* connection, const KeyLayout& layout, ScriptSet* scripts, bool no_grace,
          std::function<uint64_t()> random, LogFunction log);

  // On a new connection. `done` is not called when the connection breaks.
  void Begin(const Done& done);

  // On the same connection, after a script met data of another incarnation.
  void Again(const Done& done);

 private:
  void AskWho(const std::function<void()>& then);
  void Prepare(const Done& done);
  void Open(const Done& done);
  void Judge(const redisReply& reply, const Done& done);

  Connection* const connection_;
  const KeyLayout& layout_;
  ScriptSet* const scripts_;
  const std::function<uint64_t()> random_;
  const LogFunction log_;
  bool no_grace_;

  ServerInfo server_;
  std::string incarnation_;
  int64_t client_id_ = 0;      // of this connection; 0: unknown
  int64_t old_client_id_ = 0;  // of the last connection that was used, at run `old_run_id_`
  std::string old_run_id_;
  std::set<std::string> seen_;  // runs of servers where this daemon has met a marker
};

}  // namespace holdfast::redis
