// SPDX-License-Identifier: Apache-2.0
//
// Small files that must be either the old or the new one, whatever happens.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast::memory {

// Replaces folder/name, and returns only when that survives a crash of the
// machine: a temporary file, fsync, rename, fsync of the folder.
absl::Status WriteDurably(const std::string& folder, const std::string& name,
                          absl::string_view content);

// Makes a folder that only its owner can enter, and its parents where they are missing; on disk
// when it returns. Answers whether it was made just now.
absl::StatusOr<bool> MakeFolderDurably(const std::string& folder);

// The whole of a small file (at most 64 KiB); nullopt: there is none, or it cannot be read.
std::optional<std::string> ReadSmallFile(const std::string& path);

}  // namespace holdfast::memory
