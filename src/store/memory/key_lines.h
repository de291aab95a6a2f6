// SPDX-License-Identifier: Apache-2.0
//
// The lines of keys: who stands where, and which daemons live. The places of a
// daemon that was not heard of for kDaemonSilence are dropped when it would be
// their turn; those of one that did not claim a key in time are passed over
// until it is heard again.
//
// Threading: none.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/base/clock.h"
#include "src/base/store_types.h"

namespace holdfast::memory {

class KeyLines {
 public:
  // The daemon lives.
  void Beat(const std::string& daemon, BootTime now) { heard_[daemon] = {now, false}; }
  // It lives, perhaps, but did not claim a key.
  void PassOver(const std::string& daemon, BootTime now) { heard_[daemon] = {now, true}; }

  // Stands at the end of the line, unless it stands there already.
  void Enter(const KeyName& name, const Place& place);
  void Leave(const KeyName& name, const Place& place);
  void LeaveAll(const KeyName& name, const std::string& daemon);
  // A waiter of that place was served. A FIFO daemon's lower numbers are places that it has
  // forgotten.
  void Served(const KeyName& name, const Place& place);

  // The first place whose turn it can be; null: none.
  const Place* First(const KeyName& name, BootTime now);
  // The first `max` of those whose daemons live.
  std::vector<Place> Standing(const KeyName& name, size_t max, BootTime now);
  bool HasAny(const KeyName& name, const std::string& daemon) const;

  // How many keys have a line.
  size_t size() const { return lines_.size(); }

 private:
  using Line = std::deque<Place>;
  struct Heard {
    BootTime at;
    bool passed_over = false;
  };
  void DropDead(const KeyName& name, BootTime now);
  void Remove(const KeyName& name, const std::function<bool(const Place&)>& which);

  absl::flat_hash_map<KeyName, Line> lines_;
  absl::flat_hash_map<std::string, Heard> heard_;
};

}  // namespace holdfast::memory
