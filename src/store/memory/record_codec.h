// SPDX-License-Identifier: Apache-2.0
//
// How a key's record is written down: CBOR of a small object with a format
// version, so that a later daemon can read an earlier one's records.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "src/base/names.h"
#include "src/store/memory/lock_record.h"

namespace holdfast::memory {

struct NamedRecord {
  KeyName name;
  KeyRecord record;
};

std::string EncodeRecord(const KeyName& name, const KeyRecord& record);

// nullopt where the bytes are no record.
std::optional<NamedRecord> DecodeRecord(absl::string_view bytes);

}  // namespace holdfast::memory
