// SPDX-License-Identifier: Apache-2.0
//
// The bounds of commands. Each check answers OK, or INVALID_ARGUMENT naming the
// field and what is allowed, or UNSUPPORTED naming what this version lacks.
#pragma once

#include "absl/status/status.h"
#include "src/engine/commands.h"
#include "src/engine/engine.h"

namespace holdfast::engine {

absl::Status Validate(const OpenSession& command, const EngineOptions& options);
absl::Status Validate(const Acquire& command, const EngineOptions& options);
// Fields of one key are named as in `keys[2].limit`.
absl::Status Validate(const AcquireAll& command, const EngineOptions& options);
// A failure of one key's acquire, as one of the set.
absl::Status OfKey(const absl::Status& status, size_t asked);
absl::Status Validate(const Renew& command, const EngineOptions& options);
absl::Status Validate(const Release& command);
absl::Status Validate(const Inspect& command);
absl::Status Validate(const List& command);
absl::Status Validate(const Watch& command);
absl::Status Validate(const CloseSession& command);
absl::Status Validate(const ForceRelease& command);
// Feed and LostAck.
absl::Status ValidateHoldId(const std::string& hold_id);

}  // namespace holdfast::engine
