// SPDX-License-Identifier: Apache-2.0
//
// One schedule: daemons on a store, their clients, and what fails, all drawn
// from a seed. It has three parts:
//
//  1. The clients act, as often as was drawn, while things fail.
//  2. Nothing fails any more, and the clients only give back: each wait must be
//     answered soon, however long it may last.
//  3. The clients are gone: nothing is held, nobody waits, nothing is left in
//     the store, after one lease (promise 3).
//
// The promises are looked at after every step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/client.h"
#include "tests/sim/daemon.h"
#include "tests/sim/operator.h"
#include "tests/sim/promises.h"
#include "tests/sim/store_link.h"
#include "tests/sim/tally.h"
#include "tests/sim/world.h"

namespace holdfast::sim {

class Schedule {
 public:
  // With `telling`, what went wrong is followed by a story, which is slow to keep.
  Schedule(uint64_t seed, Tally* tally, bool telling = false);

  // What went wrong; empty: nothing.
  std::string Go();

  // What happened, as one number.
  uint64_t digest() const { return world_.digest(); }

 private:
  // Durations that depend on each other. Most schedules are short, and so are their leases; in
  // some, all is `unit` times longer, so that time passes in which nothing happens.
  struct Times {
    int64_t unit = 1;
    bool patient = false;  // some wait for longer than a lost wake-up costs
    double drift = 0;      // of a clock, at most
    Nanos gap = 0;         // between two acts of a client, on average
    Nanos ttl = 0;
    Nanos release_delay = 0;
    Nanos acting = 0;  // part 1, about
    Nanos max_lease() const { return 400 * kMillisecond * unit; }
    // After the last fault, until all that was forgotten is free.
    Nanos settling() const;
  };

  double Drift() { return 1 + times_.drift * static_cast<double>(world_.Between(-100, 100)) / 100; }
  void DrawTimes();
  void DrawStore();
  void DrawDaemons();
  void DrawClients();
  void DrawFaults();
  void DrawFaultsOf(SimDaemon& daemon);
  void OnceWhileActing(World::Action action);

  void Act();
  void Settle();
  void EndAll();
  bool AllDrained() const;
  bool NothingLeft();
  std::string WhatIsLeft() const;

  World world_;
  Tally* const tally_;
  bool faulty_ = false;
  bool settling_ = false;
  int64_t acts_left_ = 0;
  Times times_;
  StoreFaults faults_;
  std::vector<KeyName> keys_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Promises> promises_;
  engine::EngineOptions options_;
  std::vector<std::unique_ptr<SimDaemon>> daemons_;
  std::vector<SimDaemon*> all_daemons_;
  std::vector<std::unique_ptr<SimClient>> clients_;
  std::unique_ptr<SimOperator> operator_;
};

}  // namespace holdfast::sim
