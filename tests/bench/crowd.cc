// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/crowd.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "tests/bench/stream.h"

namespace holdfast::bench {
namespace {

class CrowdRun {
 public:
  CrowdRun(const std::vector<std::string>& addresses, size_t clients, v1::Ordering ordering)
      : ordering_(ordering), grants_(clients) {
    for (size_t i = 0; i < clients; ++i) {
      clients_.push_back(
          std::make_unique<Stream>(&loop_, Connect(addresses[i % addresses.size()]),
                                   [this, i](const v1::SessionEvent& event) { On(i, event); }));
    }
  }

  absl::StatusOr<CrowdResult> Run(absl::Duration span) {
    absl::Status status = loop_.RunUntil([this] {
      return std::all_of(clients_.begin(), clients_.end(), [](auto& c) { return c->opened(); });
    });
    if (!status.ok()) return status;
    end_ = clock_.Now() + span;
    for (size_t i = 0; i < clients_.size(); ++i) {
      Ask(i);
      clients_[i]->Flush();
    }
    status = loop_.RunUntil([this] { return clock_.Now() >= end_ || !failure_.ok(); });
    if (!status.ok()) return status;
    if (!failure_.ok()) return failure_;
    const auto [fewest, most] = std::minmax_element(grants_.begin(), grants_.end());
    result_.fewest_grants = static_cast<double>(*fewest);
    result_.most_grants = static_cast<double>(*most);
    return std::move(result_);
  }

 private:
  void Ask(size_t client) {
    v1::AcquireRequest& acquire = *clients_[client]->Add().mutable_acquire();
    acquire.set_key("bench:crowd");
    acquire.set_ordering(ordering_);
    acquire.mutable_wait()->set_seconds(60);
  }

  void On(size_t client, const v1::SessionEvent& event) {
    if (event.reply().acquire().has_grant())
      return OnGrant(client, event.reply().acquire().grant());
    if (event.has_contended() || event.reply().has_release()) return;
    failure_ = absl::InternalError(absl::StrCat("a handoff failed: ", event.ShortDebugString()));
  }

  void OnGrant(size_t client, const v1::Grant& grant) {
    const BootTime now = clock_.Now();
    if (released_) result_.gap_micros.push_back(absl::ToDoubleMicroseconds(now - sent_));
    ++grants_[client];
    v1::ReleaseRequest& release = *clients_[client]->Add().mutable_release();
    release.set_key(grant.key());
    release.set_owner(grant.owner());
    release.set_hold_id(grant.hold_id());
    Ask(client);
    released_ = true;
    sent_ = clock_.Now();
  }

  const MachineClock clock_;
  const v1::Ordering ordering_;
  BootTime sent_;
  BootTime end_;
  bool released_ = false;
  CrowdResult result_;
  std::vector<size_t> grants_;
  absl::Status failure_;
  Loop loop_;
  std::vector<std::unique_ptr<Stream>> clients_;
};

}  // namespace

absl::StatusOr<CrowdResult> Crowd(const std::vector<std::string>& addresses, size_t clients,
                                  v1::Ordering ordering, absl::Duration span) {
  return CrowdRun(addresses, clients, ordering).Run(span);
}

}  // namespace holdfast::bench
