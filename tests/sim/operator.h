// SPDX-License-Identifier: Apache-2.0
//
// An operator, who now and then takes a lock away (but never at once) or closes
// a session, at whichever daemon. No promise may break by it.
#pragma once

#include <vector>

#include "tests/sim/daemon.h"

namespace holdfast::sim {

class SimOperator final : public SimDaemon::Peer {
 public:
  // Acts `acts` times, with up to `gap` between two of them.
  SimOperator(World* world, std::vector<SimDaemon*> daemons, std::vector<KeyName> keys,
              int64_t acts, Nanos gap)
      : world_(world),
        daemons_(std::move(daemons)),
        keys_(std::move(keys)),
        acts_left_(acts),
        gap_(gap) {}

  void Start() { Later(); }
  void Stop() { acts_left_ = 0; }
  // How many holds it ended.
  int64_t ended() const { return ended_; }

  // `at`: the daemon that it asked.
  void OnEvent(uint64_t at, engine::Event event) override;
  void OnBroken(uint64_t, uint64_t) override {}

 private:
  void Later();
  void Act();
  void Ask(uint64_t at, engine::Command command);

  World* const world_;
  const std::vector<SimDaemon*> daemons_;
  const std::vector<KeyName> keys_;
  int64_t acts_left_;
  const Nanos gap_;
  int64_t ended_ = 0;
};

}  // namespace holdfast::sim
