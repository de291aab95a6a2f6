// SPDX-License-Identifier: Apache-2.0
//
// The holder's clock: until when a client may rely on what it was told. Pure
// arithmetic on the boot clock; every rule of it is that of "The holder's
// clock" in proto/holdfast/v1 (Grant, Pong, SessionRequest).
//
// All limits count from when the client *sent* something, because that is
// surely before the daemon received it, and end a margin early, because two
// clocks need not run alike.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "src/base/clock.h"

namespace holdfast::client {

// What a grant says about time.
struct GrantTimes {
  absl::Duration waited;
  absl::Duration lease;
  std::optional<absl::Duration> max_hold_remaining;  // nullopt: no limit
  absl::Duration safety_margin;
};

// One hold's validity.
class HoldValidity {
 public:
  // `sent`: when the acquire was sent.
  HoldValidity(BootTime sent, const GrantTimes& grant);

  // The same hold was granted once more.
  void OnGrantAgain(BootTime sent, const GrantTimes& grant);
  // A ping that was sent at `sent` was answered, with the least remaining lease of all holds.
  void OnPong(BootTime sent, absl::Duration valid_for);

  // From here on the hold is not to be relied on. Never moves back.
  BootTime until() const;
  // How long the lease is: what a holder plans its last moments by.
  absl::Duration lease() const { return lease_; }

 private:
  absl::Duration lease_;
  absl::Duration margin_;
  BootTime lease_until_;
  BootTime max_until_ = BootTime::Infinite();
};

// The session's own validity: a silent client is taken for dead after its ttl.
class SessionValidity {
 public:
  // `sent`: when `open` was sent. ttl 0: the stream alone stands for the session.
  SessionValidity(BootTime sent, absl::Duration ttl, absl::Duration safety_margin);

  void OnPong(BootTime sent);
  BootTime until() const { return until_; }

 private:
  absl::Duration ttl_;
  absl::Duration margin_;
  BootTime until_;
};

// How often to ping: a third of what runs out first, so that two pings may fail.
absl::Duration PingInterval(absl::Duration ttl, std::optional<absl::Duration> shortest_lease);

}  // namespace holdfast::client
