// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/handoff.h"

#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "tests/bench/stream.h"

namespace holdfast::bench {
namespace {

// A round: the idle one asks for the key and the holder is told so (`contended`). The holder's ping
// after that lets the daemon finish whatever else a waiter costs it. Then the release goes out.
class Handoff {
 public:
  explicit Handoff(const std::string& address) {
    for (int i = 0; i < 2; ++i) {
      clients_[i] = std::make_unique<Stream>(
          &loop_, Connect(address), [this, i](const v1::SessionEvent& e) { OnEvent(i, e); });
    }
  }

  absl::StatusOr<std::vector<double>> Run(absl::Duration span) {
    absl::Status status =
        loop_.RunUntil([this] { return clients_[0]->opened() && clients_[1]->opened(); });
    if (!status.ok()) return status;
    end_ = clock_.Now() + span;
    Ask(0);
    status = loop_.RunUntil([this] { return done_ || !failure_.ok(); });
    if (!status.ok()) return status;
    if (!failure_.ok()) return failure_;
    return std::move(micros_);
  }

 private:
  void Ask(int client) {
    v1::AcquireRequest& acquire = *clients_[client]->Add().mutable_acquire();
    acquire.set_key("bench:handoff");
    acquire.mutable_wait()->set_seconds(60);
    clients_[client]->Flush();
  }

  void OnEvent(int client, const v1::SessionEvent& event) {
    if (event.has_contended()) {
      clients_[client]->Add().mutable_ping();
    } else if (event.has_pong()) {
      v1::ReleaseRequest& release = *clients_[client]->Add().mutable_release();
      release.set_key(grant_.key());
      release.set_owner(grant_.owner());
      release.set_hold_id(grant_.hold_id());
      sent_ = clock_.Now();
    } else if (event.reply().acquire().has_grant()) {
      OnGrant(client, event.reply().acquire().grant());
    } else if (event.reply().has_release()) {
      // The other one's grant may be here already or not: it asks only when both are.
      released_ = true;
      AskNext();
    } else {
      failure_ = absl::InternalError(absl::StrCat("a handoff failed: ", event.ShortDebugString()));
    }
  }

  void OnGrant(int client, const v1::Grant& grant) {
    const BootTime now = clock_.Now();
    if (holder_ >= 0) {
      micros_.push_back(absl::ToDoubleMicroseconds(now - sent_));
    } else {
      released_ = true;  // nobody had it before
    }
    holder_ = client;
    grant_ = grant;
    granted_ = true;
    done_ = now >= end_;
    if (!done_) AskNext();
  }

  void AskNext() {
    if (!granted_ || !released_) return;
    granted_ = released_ = false;
    Ask(1 - holder_);
  }

  const MachineClock clock_;
  BootTime sent_;
  BootTime end_;
  int holder_ = -1;
  bool granted_ = false;
  bool released_ = false;
  bool done_ = false;
  v1::Grant grant_;
  std::vector<double> micros_;
  absl::Status failure_;
  Loop loop_;
  std::array<std::unique_ptr<Stream>, 2> clients_;
};

}  // namespace

absl::StatusOr<std::vector<double>> HandoffMicros(const std::string& address, absl::Duration span) {
  return Handoff(address).Run(span);
}

}  // namespace holdfast::bench
