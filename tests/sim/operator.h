// SPDX-License-Identifier: Apache-2.0
//
// An operator of a simulated daemon, who now and then takes a lock away (but
// never at once) or closes a session. No promise may break by it.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/daemon.h"

namespace holdfast::sim {

class SimOperator {
 public:
  SimOperator(World* world, SimDaemon* daemon, std::vector<std::string> keys)
      : world_(world), daemon_(daemon), keys_(std::move(keys)) {}

  void Start() { Later(); }
  int64_t ended() const { return ended_; }

 private:
  void Later();
  void Act();
  void ForceRelease();
  void CloseSession();
  void Ask(std::function<engine::Command(engine::CommandHead)> make);
  void OnReply(const engine::Reply& reply);

  World* const world_;
  SimDaemon* const daemon_;
  const std::vector<std::string> keys_;
  int64_t ended_ = 0;
};

}  // namespace holdfast::sim
