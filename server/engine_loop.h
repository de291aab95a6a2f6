// SPDX-License-Identifier: Apache-2.0
//
// The thread that owns an engine and its store, and the way in and out of it.
//
//   loop.Start();                                     the thread runs, the store is started
//   loop.Post({channel, sink, {OpenSession{...}}});   from any thread; `sink` with the first batch
//   ... sink->Deliver(events)                         on the loop's thread
//   loop.Post({channel, nullptr, {ChannelClosed{channel}}});
//   loop.Stop();
//
// Work is done in turns. What was posted and what the store answered since the last turn goes to
// the engine; what comes out goes to the store, flushed once, and to the sinks, one call each. So a
// burst costs one wake-up, one write to the store and one message a stream, however many commands
// it has.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/base/clock.h"
#include "src/engine/commands.h"
#include "src/engine/engine.h"
#include "src/store/store.h"

struct uv_loop_s;

namespace holdfast::server {

// Where the events of one channel go.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Takes the events of one turn, in order; it may move them out. Called on the loop's thread, so
  // it must not block. False: the channel expects nothing more, the loop lets go of the sink.
  virtual bool Deliver(absl::Span<engine::Event> events) = 0;
};

// Commands of one channel, in order.
struct Batch {
  uint64_t channel = 0;
  // Set with the first batch of a channel. Let go of when Deliver says so or at ChannelClosed.
  std::shared_ptr<EventSink> sink;
  absl::InlinedVector<engine::Command, 1> commands;
};

class EngineLoop {
 public:
  // Makes the store on the loop's thread. Its URL or folder may be unusable.
  using StoreFactory = std::function<absl::StatusOr<std::unique_ptr<Store>>(uv_loop_s*)>;

  // Both are called on the loop's thread and must not block.
  struct Hooks {
    // Whether new work is taken (store up, no grace, not draining), at first and when it changes.
    std::function<void(bool serving)> on_serving;
    std::function<void(const engine::DrainDone&)> on_drained;
  };

  // `ids` and `clock` outlive the loop.
  EngineLoop(engine::EngineOptions options, StoreFactory make_store, IdSource* ids,
             const Clock& clock, Hooks hooks);
  // Stops, if that was not done.
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // Starts thread and store. A failure is the store's: it cannot be used, and the thread has ended.
  absl::Status Start();

  // A number for a channel, never given out before. Any thread.
  uint64_t NewChannel();

  // Hands a batch over. Any thread. False: the queue is full, nothing was taken.
  [[nodiscard]] bool Post(Batch batch);
  // For what must not be refused: the end of a channel, the end of the daemon. Bounded by the
  // number of channels.
  void PostUnrefusable(Batch batch);

  // Stops the store and ends the thread. Nothing is delivered after it. Any thread but the loop's.
  void Stop();

  // The store as people may see it, without secrets; set by Start().
  const std::string& store_description() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::server
