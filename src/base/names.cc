// SPDX-License-Identifier: Apache-2.0
#include "src/base/names.h"

#include <openssl/sha.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/base/limits.h"
#include "src/base/status.h"

namespace holdfast {
namespace {

constexpr uint32_t kBadCodePoint = 0xFFFFFFFF;

// Takes one code point off the front of `bytes`; kBadCodePoint where it is malformed.
uint32_t TakeCodePoint(absl::string_view& bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  size_t length = 1;
  uint32_t point = lead;
  uint32_t smallest = 0;
  if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, point = lead & 0x07, smallest = 0x10000;
  } else if (lead >= 0xE0 && lead < 0xF0) {
    length = 3, point = lead & 0x0F, smallest = 0x800;
  } else if (lead >= 0xC2 && lead < 0xE0) {
    length = 2, point = lead & 0x1F, smallest = 0x80;
  } else if (lead >= 0x80) {
    return kBadCodePoint;
  }
  if (bytes.size() < length) return kBadCodePoint;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return kBadCodePoint;
    point = (point << 6) | (byte(i) & 0x3F);
  }
  if (point < smallest || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
    return kBadCodePoint;
  }
  bytes.remove_prefix(length);
  return point;
}

bool IsControl(uint32_t point) { return point < 0x20 || (point >= 0x7F && point <= 0x9F); }

absl::Status Invalid(absl::string_view field, absl::string_view rule) {
  return Fail(Reason::kInvalidField, field, absl::StrCat(field, " ", rule));
}

absl::Status CheckUtf8NoControl(absl::string_view bytes, absl::string_view field) {
  while (!bytes.empty()) {
    const uint32_t point = TakeCodePoint(bytes);
    if (point == kBadCodePoint) return Invalid(field, "must be valid UTF-8");
    if (IsControl(point)) return Invalid(field, "must not contain control characters");
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view bytes, absl::string_view field, size_t min, size_t max) {
  if (bytes.size() >= min && bytes.size() <= max) return absl::OkStatus();
  return Invalid(field, absl::StrCat("must have ", min, " to ", max, " bytes, not ", bytes.size()));
}

}  // namespace

std::string KeyName::ToString() const { return absl::StrCat(ns, ":", key); }

absl::Status CheckNamespace(absl::string_view ns) {
  absl::Status status = CheckLength(ns, "namespace", 1, limits::kMaxNamespaceBytes);
  if (!status.ok()) return status;
  for (const char c : ns) {
    const bool allowed =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!allowed) return Invalid("namespace", "may only contain a-z, 0-9, '.', '_' and '-'");
  }
  return absl::OkStatus();
}

absl::Status CheckKey(absl::string_view key, absl::string_view field) {
  absl::Status status = CheckLength(key, field, 1, limits::kMaxKeyBytes);
  return status.ok() ? CheckUtf8NoControl(key, field) : status;
}

absl::Status CheckPrefix(absl::string_view prefix) {
  return prefix.empty() ? absl::OkStatus() : CheckKey(prefix, "prefix");
}

absl::Status CheckOwner(absl::string_view owner) {
  absl::Status status = CheckLength(owner, "owner", limits::kMinOwnerBytes, limits::kMaxOwnerBytes);
  if (!status.ok()) return status;
  if (owner.front() == '#') return Invalid("owner", "must not begin with '#'");
  return CheckUtf8NoControl(owner, "owner");
}

absl::Status CheckText(absl::string_view text, absl::string_view field, size_t max_bytes) {
  absl::Status status = CheckLength(text, field, 0, max_bytes);
  if (!status.ok()) return status;
  if (!IsUtf8(text)) return Invalid(field, "must be valid UTF-8");
  if (text.find('\0') != absl::string_view::npos) return Invalid(field, "must not contain NUL");
  return absl::OkStatus();
}

absl::Status CheckId(absl::string_view id, absl::string_view field, size_t max_bytes) {
  absl::Status status = CheckLength(id, field, 0, max_bytes);
  if (!status.ok()) return status;
  for (const char c : id) {
    if (c <= 0x20 || c >= 0x7F) return Invalid(field, "must be printable ASCII without blanks");
  }
  return absl::OkStatus();
}

bool IsUtf8(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (TakeCodePoint(bytes) == kBadCodePoint) return false;
  }
  return true;
}

std::string OwnerFingerprint(absl::string_view owner) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(owner.data()), owner.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), 8));
}

}  // namespace holdfast
