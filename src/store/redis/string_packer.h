// SPDX-License-Identifier: Apache-2.0
//
// Packs strings into one MessagePack array, which scripts unpack with cmsgpack.
// A subset of https://github.com/msgpack/msgpack/blob/master/spec.md: str 8, str 32, array 32.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace holdfast::redis {

class StringPacker {
 public:
  // Forgets what was packed before.
  void Begin() {
    out_.assign(kHeader, '\0');
    count_ = 0;
  }

  void Arg(absl::string_view text) {
    if (text.size() < 256) {
      out_.push_back('\xd9');
      out_.push_back(static_cast<char>(text.size()));
    } else {
      out_.push_back('\xdb');
      AppendBigEndian(static_cast<uint32_t>(text.size()));
    }
    out_.append(text.data(), text.size());
    ++count_;
  }

  void Arg(int64_t number) {
    char digits[absl::numbers_internal::kFastToBufferSize];
    const char* end = absl::numbers_internal::FastIntToBuffer(number, digits);
    Arg(absl::string_view(digits, static_cast<size_t>(end - digits)));
  }

  // Valid until the next Begin().
  absl::string_view Packed() {
    out_[0] = '\xdd';
    for (size_t i = 0; i < 4; ++i) out_[1 + i] = static_cast<char>(count_ >> (24 - 8 * i));
    return out_;
  }

 private:
  static constexpr size_t kHeader = 5;

  void AppendBigEndian(uint32_t n) {
    for (int shift = 24; shift >= 0; shift -= 8) out_.push_back(static_cast<char>(n >> shift));
  }

  std::string out_;
  uint32_t count_ = 0;
};

}  // namespace holdfast::redis
