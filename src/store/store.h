// SPDX-License-Identifier: Apache-2.0
//
// The Store interface: where holds are kept. One conformance suite
// (tests/conformance) runs against every implementation; the embedded store is
// the reference.
//
// What a store promises:
//  * Atomic: each request is one step on its key. Nothing of it is seen half done.
//  * Guarded: a hold is renewed, released or undone only where owner, hold_id,
//    session and epoch match its record, checked inside that step. Only ForceOp
//    does something to holds by hold_id alone.
//  * Leased: each hold has a deadline by the store's own clock; a hold past it
//    does not exist, and whoever touches the key drops it. One hold's renewal
//    moves no other hold's deadline.
//  * Tokens: each new ownership of a key has a greater token than every
//    earlier one, over restarts, flushes and expiry too.
//  * Incarnations: after a restart or loss of data in which holds may have been
//    forgotten, nothing is granted (InGrace) until the longest lease has passed.
//  * Re-entry and `op_id` replay as said at the request types.
//
// Failures are answers (StoreFailure), never exceptions. Each request that HasAnswer()
// gets exactly one. A request submitted while the store
// cannot be reached is answered kUnreachable at once; one in flight when the
// connection breaks is answered kUnreachable with maybe_applied, and the store
// sees to it that it is not carried out after a later request of the same key
// was (by closing the old connection at the server before using a new one).
// Requests for one key are carried out in the order of submission.
//
// Threading: all calls, and all callbacks, happen on the one thread that owns
// the store (its event loop). A callback may be made from within Flush(), never
// from within Submit(). The listener must outlive the store.
#pragma once

#include "src/base/store_types.h"

namespace holdfast {

class StoreListener {
 public:
  virtual ~StoreListener() = default;
  virtual void OnStoreReply(StoreReply reply) = 0;
  virtual void OnStoreEvent(StoreEvent event) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // Begins to connect or to read its state; kUp follows, maybe from within the
  // first Flush(). A failure that waiting cannot cure (newer data, a folder that
  // another daemon uses, a refused password at the very first) is the answer here or a
  // kDown whose detail says so. Called once, before anything else.
  virtual absl::Status Start(StoreListener* listener) = 0;

  // Takes a request; it goes out with the next Flush().
  virtual void Submit(StoreRequest request) = 0;

  // Sends what was submitted. Called once at the end of each turn of the loop.
  virtual void Flush() = 0;

  // For the log and for people: "redis://127.0.0.1:6379/0", without secrets.
  virtual std::string Describe() const = 0;

  // Closes connections and writes what has to be written. Nothing is answered after it.
  virtual void Stop() = 0;
};

}  // namespace holdfast
