// SPDX-License-Identifier: Apache-2.0
//
// Every bound of Holdfast, with its reason where it has one. Relations between
// them are asserted at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace holdfast::limits {

// Names.
inline constexpr size_t kMaxKeyBytes = 512;
inline constexpr size_t kMaxNamespaceBytes = 64;
inline constexpr size_t kMinOwnerBytes = 16;  // a guessable owner is a shared key
inline constexpr size_t kMaxOwnerBytes = 256;
inline constexpr size_t kMaxHoldIdBytes = 64;
inline constexpr size_t kMaxSessionIdBytes = 64;
inline constexpr size_t kMaxCommandIdBytes = 64;
inline constexpr size_t kMaxNoteBytes = 1024;
inline constexpr size_t kMaxTraceparentBytes = 256;
inline constexpr size_t kMaxClientNameBytes = 128;

// Times. Functions, because absl::Duration has no constexpr factories for all of them everywhere.
inline constexpr absl::Duration kMinLease = absl::Milliseconds(100);
inline constexpr absl::Duration kDefaultLease = absl::Seconds(30);
inline constexpr absl::Duration kDefaultMaxLease = absl::Seconds(60);
inline constexpr absl::Duration kMaxMaxLease = absl::Hours(1);  // what --max-lease may be at most
inline constexpr absl::Duration kMaxWait = absl::Hours(24);
inline constexpr absl::Duration kMaxMinHold = absl::Hours(24);
inline constexpr absl::Duration kMaxReleaseDelay = absl::Hours(1);
inline constexpr absl::Duration kMaxMaxHold = absl::Hours(24 * 365);
inline constexpr absl::Duration kDefaultMaxHold = absl::Minutes(3);
inline constexpr absl::Duration kMinFeed = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxFeed = absl::Hours(24);
inline constexpr absl::Duration kMinTtl = absl::Seconds(2);
inline constexpr absl::Duration kDefaultTtl = absl::Seconds(10);
inline constexpr absl::Duration kMaxTtl = absl::Minutes(10);
inline constexpr absl::Duration kMaxReconnectGrace = absl::Minutes(10);

// Retries by command_id.
inline constexpr size_t kRememberedCommands = 100'000;
inline constexpr absl::Duration kCommandMemory = absl::Minutes(5);
inline constexpr size_t kForgottenCommands = 1'000'000;  // fingerprints kept after that
inline constexpr size_t kOpsPerHold = 4;  // op ids that a hold's record in the store keeps

// Sizes.
inline constexpr uint32_t kMaxHoldCount = 1'000'000;
inline constexpr uint32_t kMaxPermitLimit = 1'000;
// Of readers, or of one owner's sessions: a store looks at all of them in one step.
inline constexpr size_t kMaxHoldsPerKey = 1'000;
inline constexpr size_t kMaxKeysPerAcquireAll = 16;
inline constexpr size_t kMaxHoldersInAnswer = 16;     // to an acquire, and in a listing
inline constexpr size_t kMaxHoldersInReport = 1'000;  // of one key
inline constexpr size_t kMaxWaitersInReport = 100;
inline constexpr size_t kMaxReleaseDelays = 100;  // rules, looked through at each acquire
inline constexpr size_t kMaxWaitersPerKey = 100'000;
inline constexpr size_t kMaxWaiters = 1'000'000;
inline constexpr size_t kMaxSessions = 1'000'000;
inline constexpr size_t kMaxHoldsPerSession = 1'000'000;
inline constexpr size_t kMaxCommandsPerMessage = 4096;
inline constexpr size_t kMaxInFlightPerSession = 65'536;
inline constexpr size_t kMaxPendingEventsPerSession = 262'144;  // then the client is a slow reader
inline constexpr size_t kMaxRequestIdRanges = 1024;
inline constexpr size_t kSessionsPerPage = 256;
inline constexpr size_t kKeysPerListStep = 256;          // keys that the embedded store looks at
inline constexpr size_t kMaxQueuedCommands = 1'048'576;  // on the way into one engine
inline constexpr size_t kRenewalsPerCall = 128;  // more holds Redis for longer than it saves

// Watching.
inline constexpr size_t kMaxWatchers = 1'000;  // of a daemon; each event is looked at for each
inline constexpr size_t kMaxPendingWatchEvents =
    10'000;  // of a watcher; then it is told that it missed some
inline constexpr size_t kRememberedEnds = 100'000;  // holds whose grant or end was told
inline constexpr size_t kTrackedHolds = 20'000;     // whose expiry a watching daemon looks out for
inline constexpr absl::Duration kWatchSpan =
    absl::Seconds(30);  // how long a sign of watching counts
inline constexpr absl::Duration kWatchRefresh = absl::Seconds(10);  // and how often it is given

// Deadlocks: how long a cycle may be to be found, and how many waiters one look for it may touch.
inline constexpr size_t kMaxDeadlockLength = 64;
inline constexpr size_t kMaxDeadlockVisits = 10'000;

// A waiter asks the store again at least that often, in case a wake-up was lost.
inline constexpr absl::Duration kWakeRetry = absl::Seconds(5);

// How long an AcquireAll may hold some of its keys without the others before it gives them back,
// and how much later than its answer says the store ends a max_hold or min_hold, which it counts
// from each key's own grant.
inline constexpr absl::Duration kMaxPartialHold = absl::Milliseconds(200);
inline constexpr absl::Duration kSetSlack = absl::Milliseconds(250);

// A key that was handed to another daemon's waiter has to be claimed within that time.
inline constexpr absl::Duration kClaimTime = absl::Milliseconds(500);
// The waiters of a daemon that has not been heard of for so long are passed over.
inline constexpr absl::Duration kDaemonSilence = absl::Seconds(3);
inline constexpr absl::Duration kDaemonBeat = absl::Seconds(1);
// A line that nobody looks after is gone; its waiters come back to it every kWakeRetry.
inline constexpr absl::Duration kLineExpiry = absl::Minutes(1);
// So long after a writer said that it waits no reader joins those who read.
inline constexpr absl::Duration kWriterPatience = absl::Seconds(6);
// While another daemon's waiter is first, a daemon's own may pass the key among them so often and
// so long.
inline constexpr uint32_t kMaxOwnHandoffs = 16;
inline constexpr absl::Duration kMaxOwnTime = absl::Milliseconds(200);

// A token stays below what a double holds exactly.
inline constexpr int64_t kMaxToken = (int64_t{1} << 53) - 1;
inline constexpr int64_t kTokensPerMilli = 4096;
inline constexpr int64_t kTokenEpochUnixMillis = 1'704'067'200'000;  // 2024-01-01T00:00:00Z

static_assert(kMinLease < kDefaultLease && kDefaultLease < kDefaultMaxLease);
static_assert(kDefaultMaxLease < kMaxMaxLease && kDefaultMaxHold < kMaxMaxHold);
static_assert(kMaxPartialHold < kSetSlack);
static_assert(kMinTtl < kDefaultTtl && kDefaultTtl < kMaxTtl);
static_assert(kMaxPermitLimit <= kMaxHoldsPerKey);
static_assert(kForgottenCommands >= kRememberedCommands);
static_assert(kWatchRefresh < kWatchSpan);
// Until 2090 a fresh token fits: 66 years of milliseconds.
static_assert(int64_t{66} * 366 * 86'400'000 * kTokensPerMilli < kMaxToken);

}  // namespace holdfast::limits

namespace holdfast {

// How much earlier than the store the holder's side counts a lease as over:
// covers the drift between two clocks over one lease, and a little scheduling.
inline absl::Duration SafetyMargin(absl::Duration lease) {
  return lease / 50 + absl::Milliseconds(10);
}

// By how much two clocks may come to differ while something waits that may wait for hours: twice
// what two bad quartzes do. The margin covers a lease only.
inline absl::Duration ClockDrift(absl::Duration waited) { return waited / 1000; }

}  // namespace holdfast
