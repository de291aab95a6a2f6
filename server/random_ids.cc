// SPDX-License-Identifier: Apache-2.0
#include "server/random_ids.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace holdfast::server {
namespace {

constexpr size_t kIdChars = 26;
constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

}  // namespace

std::string RandomIds::NewId() {
  std::array<unsigned char, kIdChars> bytes;
  ssize_t got = 0;
  do {
    got = getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  // Up to 256 bytes come whole or not at all, and not at all means a kernel without the call.
  if (got != static_cast<ssize_t>(bytes.size())) std::abort();

  std::string id(kIdChars, 'a');
  for (size_t i = 0; i < kIdChars; ++i) id[i] = kAlphabet[bytes[i] & 31];
  return id;
}

}  // namespace holdfast::server
