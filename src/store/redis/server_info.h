// SPDX-License-Identifier: Apache-2.0
//
// What INFO says about the server behind a connection.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace holdfast::redis {

struct ServerInfo {
  std::string run_id;   // of this run of the process; empty: the server hides it
  std::string repl_id;  // of its data's history
  std::string role;     // "master" or "slave"
  int major_version = 0;
  int word_bits = 64;

  // One life of a primary: a restart, a promotion or a flush makes a new one. Empty where the
  // server hides who it is.
  std::string Incarnation() const;
};

// Reads the sections "server" and "replication" of INFO, given one after the other or at once.
void ParseInfo(absl::string_view text, ServerInfo* info);

}  // namespace holdfast::redis
