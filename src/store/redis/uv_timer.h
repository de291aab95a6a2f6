// SPDX-License-Identifier: Apache-2.0
//
// A libuv timer that closes itself: libuv keeps a handle until the loop has
// seen its close, so the handle lives on the heap and outlasts its owner.
#pragma once

#include <uv.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace holdfast::redis {

// Used on the loop's thread only. Destroying it inside its own callback is fine.
class UvTimer {
 public:
  UvTimer(uv_loop_t* loop, std::function<void()> fn) : handle_(new Handle{{}, std::move(fn)}) {
    uv_timer_init(loop, &handle_->timer);
    handle_->timer.data = handle_;
  }
  ~UvTimer() {
    uv_close(reinterpret_cast<uv_handle_t*>(&handle_->timer),
             [](uv_handle_t* h) { delete static_cast<Handle*>(h->data); });
  }
  UvTimer(const UvTimer&) = delete;
  UvTimer& operator=(const UvTimer&) = delete;

  // Fires once, at least `after` from now (rounded up to a millisecond). Replaces an earlier
  // Start().
  void Start(absl::Duration after) {
    const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(after, absl::Milliseconds(1)));
    uv_timer_start(
        &handle_->timer, [](uv_timer_t* t) { static_cast<Handle*>(t->data)->fn(); },
        static_cast<uint64_t>(std::max<int64_t>(ms, 0)), 0);
  }
  void Stop() { uv_timer_stop(&handle_->timer); }
  bool active() const { return uv_is_active(reinterpret_cast<uv_handle_t*>(&handle_->timer)) != 0; }

 private:
  struct Handle {
    uv_timer_t timer;
    std::function<void()> fn;
  };
  Handle* handle_;  // freed by its close callback
};

}  // namespace holdfast::redis
