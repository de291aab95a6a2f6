// SPDX-License-Identifier: Apache-2.0
#include "client/lib/validity.h"

#include <algorithm>

namespace holdfast::client {
namespace {

constexpr absl::Duration kShortestPingInterval = absl::Milliseconds(20);

}  // namespace

HoldValidity::HoldValidity(BootTime sent, const GrantTimes& grant)
    : lease_(grant.lease),
      margin_(grant.safety_margin),
      lease_until_(sent + (grant.waited + grant.lease - grant.safety_margin)) {
  if (grant.max_hold_remaining.has_value()) {
    max_until_ = sent + (grant.waited + *grant.max_hold_remaining - grant.safety_margin);
  }
}

void HoldValidity::OnGrantAgain(BootTime sent, const GrantTimes& grant) {
  const HoldValidity again(sent, grant);
  lease_ = std::max(lease_, again.lease_);
  margin_ = std::max(margin_, again.margin_);
  lease_until_ = std::max(lease_until_, again.lease_until_);
  // A re-entry does not change the max hold: of two computations the earlier one is the safe one.
  max_until_ = std::min(max_until_, again.max_until_);
}

void HoldValidity::OnPong(BootTime sent, absl::Duration valid_for) {
  lease_until_ = std::max(lease_until_, sent + (valid_for - margin_));
}

BootTime HoldValidity::until() const { return std::min(lease_until_, max_until_); }

SessionValidity::SessionValidity(BootTime sent, absl::Duration ttl, absl::Duration safety_margin)
    : ttl_(ttl), margin_(safety_margin), until_(BootTime::Infinite()) {
  if (ttl_ > absl::ZeroDuration()) until_ = sent + (ttl_ - margin_);
}

void SessionValidity::OnPong(BootTime sent) {
  if (ttl_ > absl::ZeroDuration()) until_ = std::max(until_, sent + (ttl_ - margin_));
}

absl::Duration PingInterval(absl::Duration ttl, std::optional<absl::Duration> shortest_lease) {
  absl::Duration span = ttl > absl::ZeroDuration() ? ttl : absl::InfiniteDuration();
  if (shortest_lease.has_value()) span = std::min(span, *shortest_lease);
  return std::max(span / 3, kShortestPingInterval);
}

}  // namespace holdfast::client
