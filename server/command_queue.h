// SPDX-License-Identifier: Apache-2.0
//
// The queue from many threads into the engine's.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "server/engine_loop.h"

namespace holdfast::server {

class CommandQueue {
 public:
  enum class Pushed {
    kFirst,  // the queue was empty: wake the reader
    kMore,   // the reader has been woken already
    kFull,   // not taken
  };

  // `max_commands` bounds what waits; a batch is taken whole, so it may be exceeded by one of them.
  explicit CommandQueue(size_t max_commands) : max_commands_(max_commands) {}

  // Any thread. `always` takes the batch even when the queue is full.
  Pushed Push(Batch batch, bool always) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!always && commands_ >= max_commands_) return Pushed::kFull;
    const bool first = batches_.empty();
    commands_ += batch.commands.size();
    batches_.push_back(std::move(batch));
    return first ? Pushed::kFirst : Pushed::kMore;
  }

  // The reader: takes everything. `into` is empty and lends its memory.
  void TakeAll(std::vector<Batch>& into) {
    const std::lock_guard<std::mutex> lock(mutex_);
    batches_.swap(into);
    commands_ = 0;
  }

 private:
  const size_t max_commands_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Batch> batches_;
  size_t commands_ = 0;
};

}  // namespace holdfast::server
