// SPDX-License-Identifier: Apache-2.0
//
// Who watches which keys, and what of the store's news is news to them.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/base/key_news.h"
#include "src/engine/commands.h"

namespace holdfast::engine {

struct Watcher {
  ReplyTo to;
  std::string ns;
  std::string prefix;
  bool began = false;    // it was told that from now on it hears everything
  bool missed = false;   // the store was gone since: it is to be told when it is heard again
  uint64_t request = 0;  // the WatchOp in flight for it

  bool Cares(const KeyName& name) const;
};

class Watches {
 public:
  void Add(Watcher watcher);
  // False: there was none.
  bool Remove(uint64_t channel);
  Watcher* Find(uint64_t channel);

  size_t size() const { return watchers_.size(); }
  // In order of their channels.
  std::vector<Watcher*> All();

  // What is to be told of it; null: nothing. A hold's end is told once, by whoever knew first, and
  // the end of one that was undone only where its grant was told.
  std::shared_ptr<const KeyNews> Judge(std::shared_ptr<const KeyNews> news);

 private:
  void Remember(const std::string& hold_id, bool ended);

  absl::flat_hash_map<uint64_t, Watcher> watchers_;
  // Whether the hold has ended, of the kRememberedEnds newest that something was told of.
  absl::flat_hash_map<std::string, bool> ended_;
  std::deque<std::string> oldest_;
};

}  // namespace holdfast::engine
