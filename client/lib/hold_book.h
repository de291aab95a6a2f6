// SPDX-License-Identifier: Apache-2.0
//
// What a session holds, and what may still be relied on. A hold that is lost
// once, by whichever clock or word, stays lost: a pong that arrives after the
// end of a validity does not bring it back, for somebody else may hold by then.
//
// Pure: time is handed in and never goes back. Threading: none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/lib/session.h"
#include "client/lib/validity.h"
#include "holdfast/v1/types.pb.h"
#include "src/base/clock.h"

namespace holdfast::client {

class HoldBook {
 public:
  // What Release needs to name a hold.
  struct Names {
    std::string ns;
    std::string key;
    std::string owner;
  };

  explicit HoldBook(SessionValidity session) : session_(session) {}

  // A grant of a request that was sent at `sent`.
  void OnGrant(BootTime sent, const v1::Grant& grant, BootTime now);
  // An answered ping; without `valid_for` it speaks for the session only.
  void OnPong(BootTime sent, std::optional<absl::Duration> valid_for, BootTime now);
  // The daemon says so.
  void OnLost(const std::string& hold_id, v1::LossReason reason);
  // The daemon ended the session: all is lost.
  void OnSessionOver();
  // One acquire is being given back; the hold of a single one is not held from here on.
  void OnRelease(const std::string& hold_id);
  void Forget(const std::string& hold_id) { holds_.erase(hold_id); }

  // Marks as lost what is over at `now`.
  void Advance(BootTime now);
  // The holds that were lost since the last call.
  std::vector<std::string> TakeLost();
  // When Advance will find something.
  BootTime NextDeadline() const;

  // These look at the clock for the one hold.
  bool IsHeld(const std::string& hold_id, BootTime now);
  // 0: it is not held.
  BootTime ValidUntil(const std::string& hold_id, BootTime now);
  std::optional<Loss> LossOf(const std::string& hold_id, BootTime now);
  // nullopt: not known.
  std::optional<Names> NamesOf(const std::string& hold_id) const;
  std::optional<absl::Duration> ShortestLease() const;
  bool session_over() const { return session_over_; }

 private:
  struct Hold {
    Names names;
    HoldValidity validity;
    uint32_t count = 1;
    std::optional<Loss> loss;
  };

  // Null: not known.
  Hold* Find(const std::string& hold_id, BootTime now);
  void Check(const std::string& hold_id, Hold& hold, BootTime now);
  void Lose(const std::string& hold_id, Hold& hold, Loss loss);

  SessionValidity session_;
  bool session_over_ = false;
  std::map<std::string, Hold> holds_;
  std::vector<std::string> lost_;
};

}  // namespace holdfast::client
