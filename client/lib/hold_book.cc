// SPDX-License-Identifier: Apache-2.0
#include "client/lib/hold_book.h"

#include <algorithm>
#include <utility>

#include "client/lib/convert.h"

namespace holdfast::client {

void HoldBook::OnGrant(BootTime sent, const v1::Grant& grant, BootTime now) {
  Advance(now);
  const auto it = holds_.find(grant.hold_id());
  if (it != holds_.end() && !it->second.loss.has_value()) {
    it->second.count += 1;
    it->second.validity.OnGrantAgain(sent, TimesOf(grant));
    return;
  }
  holds_.insert_or_assign(grant.hold_id(),
                          Hold{.names = {grant.namespace_(), grant.key(), grant.owner()},
                               .validity = HoldValidity(sent, TimesOf(grant)),
                               .loss = std::nullopt});
  Advance(now);  // it may have been on its way for longer than its lease
}

void HoldBook::OnPong(BootTime sent, std::optional<absl::Duration> valid_for, BootTime now) {
  Advance(now);
  if (session_over_) return;
  session_.OnPong(sent);
  if (!valid_for.has_value()) return;
  for (auto& [id, hold] : holds_) {
    if (!hold.loss.has_value()) hold.validity.OnPong(sent, *valid_for);
  }
}

void HoldBook::OnLost(const std::string& hold_id, v1::LossReason reason) {
  const auto it = holds_.find(hold_id);
  if (it == holds_.end()) return;
  Lose(hold_id, it->second, {.reason = reason, .told = true});
}

void HoldBook::OnSessionOver() {
  session_over_ = true;
  for (auto& [id, hold] : holds_) {
    Lose(id, hold, {.reason = v1::LOSS_REASON_SESSION_CLOSED, .told = true});
  }
}

void HoldBook::OnRelease(const std::string& hold_id) {
  const auto it = holds_.find(hold_id);
  if (it != holds_.end() && --it->second.count == 0) holds_.erase(it);
}

void HoldBook::Advance(BootTime now) {
  if (session_.until() <= now) session_over_ = true;
  for (auto& [id, hold] : holds_) Check(id, hold, now);
}

void HoldBook::Check(const std::string& hold_id, Hold& hold, BootTime now) {
  if (session_over_) Lose(hold_id, hold, {.reason = v1::LOSS_REASON_SESSION_CLOSED});
  if (hold.validity.until() <= now) {
    Lose(hold_id, hold, {.reason = v1::LOSS_REASON_LEASE_EXPIRED});
  }
}

void HoldBook::Lose(const std::string& hold_id, Hold& hold, Loss loss) {
  if (hold.loss.has_value()) return;
  hold.loss = loss;
  lost_.push_back(hold_id);
}

std::vector<std::string> HoldBook::TakeLost() { return std::exchange(lost_, {}); }

BootTime HoldBook::NextDeadline() const {
  if (session_over_) return BootTime::Infinite();
  BootTime next = session_.until();
  for (const auto& [id, hold] : holds_) {
    if (!hold.loss.has_value()) next = std::min(next, hold.validity.until());
  }
  return next;
}

HoldBook::Hold* HoldBook::Find(const std::string& hold_id, BootTime now) {
  if (session_.until() <= now) session_over_ = true;
  const auto it = holds_.find(hold_id);
  if (it == holds_.end()) return nullptr;
  Check(hold_id, it->second, now);
  return &it->second;
}

bool HoldBook::IsHeld(const std::string& hold_id, BootTime now) {
  const Hold* const hold = Find(hold_id, now);
  return hold != nullptr && !hold->loss.has_value();
}

BootTime HoldBook::ValidUntil(const std::string& hold_id, BootTime now) {
  const Hold* const hold = Find(hold_id, now);
  if (hold == nullptr || hold->loss.has_value()) return BootTime();
  return std::min(session_.until(), hold->validity.until());
}

std::optional<Loss> HoldBook::LossOf(const std::string& hold_id, BootTime now) {
  const Hold* const hold = Find(hold_id, now);
  return hold != nullptr ? hold->loss : std::nullopt;
}

std::optional<HoldBook::Names> HoldBook::NamesOf(const std::string& hold_id) const {
  const auto it = holds_.find(hold_id);
  if (it == holds_.end()) return std::nullopt;
  return it->second.names;
}

std::optional<absl::Duration> HoldBook::ShortestLease() const {
  std::optional<absl::Duration> shortest;
  for (const auto& [id, hold] : holds_) {
    if (hold.loss.has_value()) continue;
    shortest = std::min(shortest.value_or(absl::InfiniteDuration()), hold.validity.lease());
  }
  return shortest;
}

}  // namespace holdfast::client
