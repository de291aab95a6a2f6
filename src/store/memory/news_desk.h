// SPDX-License-Identifier: Apache-2.0
//
// What the lock table has to tell those who watch: nothing while nobody does.
#pragma once

#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/store_types.h"
#include "src/store/memory/lock_record.h"

namespace holdfast::memory {

class NewsDesk {
 public:
  void Open() { open_ = true; }
  void Close() {
    open_ = false;
    news_.clear();
  }

  void Granted(const KeyName& name, const KeyRecord& record, const HoldRecord& hold, BootTime now);
  // `reason`: of kLost.
  void Ended(KeyNews::Kind kind, const KeyName& name, const KeyRecord& record,
             const HoldRecord& hold, LossReason reason = LossReason::kLeaseExpired);
  void Tell(const KeyNews& news) {
    if (open_) news_.push_back(news);
  }

  // Since the last call, in the order in which it happened.
  std::vector<KeyNews> Take() { return std::exchange(news_, {}); }

 private:
  bool open_ = false;
  std::vector<KeyNews> news_;
};

}  // namespace holdfast::memory
