// SPDX-License-Identifier: Apache-2.0
#include "server/random_ids.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace holdfast::server {
namespace {

constexpr size_t kIdChars = 26;
constexpr size_t kShortIdChars = 15;
constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

// As many as come whole or not at all, and not at all means a kernel without the call.
constexpr size_t kBytesPerCall = 256;

// Asking the kernel for each id would be a system call for each: bytes are kept for the next few, a
// thread's own so that no two ids share any.
class RandomBytes {
 public:
  unsigned char Next() {
    if (used_ == bytes_.size()) Fill();
    return bytes_[used_++];
  }

 private:
  void Fill() {
    ssize_t got = 0;
    do {
      got = getrandom(bytes_.data(), bytes_.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(bytes_.size())) std::abort();
    used_ = 0;
  }

  std::array<unsigned char, kBytesPerCall> bytes_;
  size_t used_ = kBytesPerCall;
};

std::string RandomChars(size_t n) {
  thread_local RandomBytes random;
  std::string id(n, 'a');
  for (char& c : id) c = kAlphabet[random.Next() & 31];
  return id;
}

}  // namespace

std::string RandomIds::NewId() { return RandomChars(kIdChars); }

std::string RandomIds::NewShortId() { return RandomChars(kShortIdChars); }

}  // namespace holdfast::server
