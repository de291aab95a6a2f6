// SPDX-License-Identifier: Apache-2.0
//
// When Redis expires a lock nobody is told. So whoever watches keeps in mind which holds there are,
// from what it heard and saw, and looks at the key when one should be over. Pure: no connection.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "src/base/clock.h"
#include "src/base/store_types.h"
#include "src/store/redis/news_codec.h"

namespace holdfast::redis {

class HoldLedger {
 public:
  // What follows from it: holds that must have ended before, as lost.
  std::vector<KeyNews> Hear(const HeardNews& heard, BootTime now);

  // Somebody looked at the key. Its holds that are not there are over, unless there is news of them
  // on its way.
  void See(const KeyReport& report, BootTime now);

  struct Due {
    std::vector<KeyName> look_at;
    std::vector<KeyNews> lost;
  };
  // At most so many of each; NextDue() says when to come again.
  Due TakeDue(BootTime now, size_t max);
  BootTime NextDue() const { return due_.empty() ? BootTime::Infinite() : due_.begin()->first; }

  bool full() const;
  void Clear();

 private:
  struct Entry {
    KeyNews lost;  // what is to be told of it
    BootTime due;
    bool gone = false;  // it was looked for in vain
  };

  void Add(KeyNews lost, BootTime due);
  void Move(const std::string& hold_id, Entry& entry, BootTime due);
  void Forget(const std::string& hold_id);

  absl::flat_hash_map<std::string, Entry> holds_;
  absl::flat_hash_map<KeyName, std::vector<std::string>> of_key_;
  absl::btree_set<std::pair<BootTime, std::string>> due_;
};

}  // namespace holdfast::redis
