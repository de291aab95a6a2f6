// SPDX-License-Identifier: Apache-2.0
//
// Writes Redis commands in RESP into a buffer that is used again and again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace holdfast::redis {

class RespWriter {
 public:
  // Starts a command of `args` arguments, its name included. Forgets the command before it.
  void Begin(size_t args) {
    out_.clear();
    Header('*', args);
  }

  void Arg(absl::string_view text) {
    Header('$', text.size());
    out_.append(text.data(), text.size());
    out_.append("\r\n", 2);
  }

  void Arg(int64_t number) {
    char digits[absl::numbers_internal::kFastToBufferSize];
    const char* end = absl::numbers_internal::FastIntToBuffer(number, digits);
    Arg(absl::string_view(digits, static_cast<size_t>(end - digits)));
  }

  // The command, valid until the next Begin().
  absl::string_view wire() const { return out_; }

  // A whole command at once.
  absl::string_view Command(std::initializer_list<absl::string_view> args) {
    Begin(args.size());
    for (absl::string_view arg : args) Arg(arg);
    return wire();
  }

 private:
  void Header(char kind, size_t number) {
    char digits[absl::numbers_internal::kFastToBufferSize];
    const char* end =
        absl::numbers_internal::FastIntToBuffer(static_cast<uint64_t>(number), digits);
    out_.push_back(kind);
    out_.append(digits, static_cast<size_t>(end - digits));
    out_.append("\r\n", 2);
  }

  std::string out_;
};

}  // namespace holdfast::redis
