// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/operator.h"

#include <utility>

namespace holdfast::sim {

void SimOperator::Later() {
  world_->After(world_->Between(gap_ / 10, gap_), [this] {
    if (acts_left_-- > 0) Act();
  });
}

void SimOperator::Act() {
  Later();
  const auto at = static_cast<uint64_t>(world_->Between(0, std::ssize(daemons_) - 1));
  if (!daemons_[at]->alive()) return;
  if (world_->Chance(0.4)) return Ask(at, engine::ListSessions{{}, 0});
  const KeyName& name = world_->OneOf(keys_);
  world_->Note("an operator takes ", name.key, " away");
  Ask(at, engine::ForceRelease{{}, name, "", false, ""});
}

void SimOperator::Ask(uint64_t at, engine::Command command) {
  const uint64_t channel = daemons_[at]->OpenChannel(this, at);
  daemons_[at]->Send(channel, 1, std::move(command));
}

void SimOperator::OnEvent(uint64_t at, engine::Event event) {
  const auto* reply = std::get_if<engine::Reply>(&event.body);
  if (reply == nullptr) return;
  if (const auto* forced = std::get_if<engine::ForceAnswer>(&reply->result)) {
    ended_ += forced->forced.holds;
  } else if (const auto* closed = std::get_if<engine::CloseSessionAnswer>(&reply->result)) {
    ended_ += closed->holds;
  } else if (const auto* list = std::get_if<engine::SessionsAnswer>(&reply->result)) {
    if (list->sessions.empty() || !daemons_[at]->alive()) return;
    const std::string& id = world_->OneOf(list->sessions).session_id;
    world_->Note("an operator closes the session ", id);
    Ask(at, engine::CloseSession{{}, id});
  }
}

}  // namespace holdfast::sim
