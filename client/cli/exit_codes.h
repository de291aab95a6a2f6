// SPDX-License-Identifier: Apache-2.0
//
// What the command line exits with, beside a command's own code. Scripts rely on these.
#pragma once

namespace holdfast::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 64;        // EX_USAGE: wrong usage
inline constexpr int kExitUnavailable = 69;  // EX_UNAVAILABLE: no daemon, or it cannot serve now
inline constexpr int kExitConflict = 124;    // the lock is busy, or the wait ran out
inline constexpr int kExitLost = 125;        // the lock was lost
inline constexpr int kExitCannotRun = 126;   // the command is there but cannot be run
inline constexpr int kExitNotFound = 127;    // there is no such command
inline constexpr int kExitSignalBase = 128;  // + the signal that ended the command

}  // namespace holdfast::cli
