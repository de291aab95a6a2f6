// SPDX-License-Identifier: Apache-2.0
//
// The names that users choose, and their rules. Each check answers OK or
// INVALID_ARGUMENT naming `field` and what is allowed.
#pragma once

#include <compare>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace holdfast {

// What is locked: a key inside a namespace.
struct KeyName {
  std::string ns;
  std::string key;

  friend auto operator<=>(const KeyName&, const KeyName&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const KeyName& name) {
    return H::combine(std::move(h), name.ns, name.key);
  }
  // "namespace:key", for logs and messages.
  std::string ToString() const;
};

// 1 to 64 of [a-z0-9._-].
absl::Status CheckNamespace(absl::string_view ns);

// 1 to 512 bytes of UTF-8 with no control characters (U+0000-U+001F, U+007F-U+009F).
absl::Status CheckKey(absl::string_view key, absl::string_view field = "key");

// A key prefix: as a key, but may be empty.
absl::Status CheckPrefix(absl::string_view prefix);

// 16 to 256 bytes of UTF-8 with no control characters, not beginning with '#'
// (the store keeps its own fields under such names).
absl::Status CheckOwner(absl::string_view owner);

// UTF-8 of at most `max_bytes`; control characters are allowed in free text
// except NUL. For notes, client names and the like.
absl::Status CheckText(absl::string_view text, absl::string_view field, size_t max_bytes);

// Printable ASCII without blanks, at most `max_bytes`: ids that a client sends back or makes.
absl::Status CheckId(absl::string_view id, absl::string_view field, size_t max_bytes);

// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool IsUtf8(absl::string_view bytes);

// 16 hex digits that tell owners apart in logs and to people, and do not give
// the owner away (truncated SHA-256).
std::string OwnerFingerprint(absl::string_view owner);

}  // namespace holdfast
