// SPDX-License-Identifier: Apache-2.0
//
// The lock engine of one event loop: all sessions, holds and waiters of the
// keys that this loop owns.
//
//   engine.Handle(command, now);          // from clients
//   engine.OnStoreReply(reply, now);      // from the store
//   engine.OnStoreEvent(event, now);
//   engine.Advance(now);                  // when NextDeadline() has come
//   Output out = engine.TakeOutput();     // after each turn: requests, then events
//
// Ordering: events of one channel are in the order in which they must be sent.
// Requests must be submitted in order.
//
// Threading: none; one thread at a time. Time never goes back between calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/base/clock.h"
#include "src/base/ids.h"
#include "src/base/limits.h"
#include "src/base/store_types.h"
#include "src/engine/commands.h"

namespace holdfast::engine {

// For the keys of a namespace that begin with `prefix`. The longest prefix that fits counts.
struct ReleaseDelay {
  std::string ns;
  std::string prefix;
  absl::Duration delay;
};

struct EngineOptions {
  absl::Duration default_lease = limits::kDefaultLease;
  absl::Duration max_lease = limits::kDefaultMaxLease;
  // Infinite: none unless the request sets one.
  absl::Duration default_max_hold = limits::kDefaultMaxHold;
  // The ordering of a request that says none: FIFO, else BARGING.
  bool default_fifo = false;
  // A closed connection proves nothing: wait for the ttl there too.
  bool behind_proxy = false;
  // How long what a hold has is kept back when it ended without its release. At most
  // kMaxReleaseDelays.
  std::vector<ReleaseDelay> release_delays;
};

struct Output {
  std::vector<StoreRequest> requests;
  std::vector<Event> events;
  bool empty() const { return requests.empty() && events.empty(); }
};

// For health, logs and people.
struct EngineStatus {
  bool store_up = false;
  BootTime grace_until;  // in the past: no grace
  bool draining = false;
  size_t sessions = 0;
  size_t holds = 0;  // of sessions; bare leases are known to the store only
  size_t waiters = 0;
};

class EngineCore;

class Engine {
 public:
  // `ids` must outlive the engine.
  Engine(EngineOptions options, IdSource* ids);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void Handle(Command&& command, BootTime now);
  void OnStoreReply(StoreReply&& reply, BootTime now);
  void OnStoreEvent(const StoreEvent& event, BootTime now);

  // Does what is due at `now`. Harmless when called too early.
  void Advance(BootTime now);
  // When Advance must be called next at the latest; infinite: not before another input.
  BootTime NextDeadline() const;

  // What came out since the last call.
  Output TakeOutput();
  // The same into `out`, whose memory is used again.
  void TakeOutput(Output* out);

  EngineStatus status() const;

  // Checks the engine's own bookkeeping; the answer names what is wrong. For tests.
  std::optional<std::string> FindInconsistency() const;

 private:
  std::unique_ptr<EngineCore> core_;
};

}  // namespace holdfast::engine
