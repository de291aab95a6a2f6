// SPDX-License-Identifier: Apache-2.0
//
// What one key's record means: who may hold beside whom, what an end leaves
// behind, what is answered. Pure functions; the lock table says what happens when.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/store_types.h"
#include "src/store/memory/lock_record.h"

namespace holdfast::memory {

StoreFailure Failure(StoreFailureKind kind, std::string message);

// Why the key cannot get one hold more, if it cannot.
std::optional<StoreFailure> Hindrance(const KeyRecord& record, const std::string& hold_id);

HoldRecord* FindHold(KeyRecord* record, const HoldRef& ref, bool any_id);

uint32_t CountOf(const KeyRecord* record, const std::string& owner);

// Of the permit that the owner holds.
int64_t NumberOf(const KeyRecord& record, const std::string& owner);

bool IsHeld(const KeyRecord* record);

bool Remembers(const HoldRecord& hold, const std::string& op_id);

void Remember(HoldRecord& hold, const std::string& op_id);

// A hold is over; until `kept` what it held is kept back. Answers until when that is so in all.
BootTime EndHold(KeyRecord& record, std::vector<HoldRecord>::iterator hold, BootTime kept,
                 BootTime now);

// When the hold's part of the key can be free without a release.
BootTime EndOf(const HoldRecord& hold);

// Whether an owner who holds nothing of the key can take it in this mode.
bool HasRoom(const KeyRecord& record, Mode mode);

// Whether an owner who holds the key so can take it once more in this mode.
bool Agrees(const KeyRecord& record, Mode mode, uint32_t limit);

// Without a count yet.
HoldRecord NewHold(const AcquireOp& op, BootTime now);

// One count more, and at least this lease.
void Take(HoldRecord& hold, const AcquireOp& op, BootTime now);

HoldGone GoneFrom(const KeyRecord* record, const std::string& owner);

Granted GrantOf(const KeyRecord& record, const HoldRecord& hold, BootTime now, bool replayed);

// For people.
HolderState StateOf(const KeyRecord& record, const HoldRecord& hold, BootTime now);

Busy BusyOf(const KeyRecord& record, Mode mode, BootTime now);

KeyReport ReportOf(const KeyName& name, const KeyRecord& record, size_t max_holders, BootTime now);

BootTime DueOf(const KeyRecord& record);

}  // namespace holdfast::memory
