// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/operator.h"

#include "absl/strings/str_cat.h"

namespace holdfast::sim {

void SimOperator::Later() {
  world_->After(world_->Millis(50, 1500), [this] { Act(); });
}

void SimOperator::Act() {
  Later();
  if (!daemon_->alive()) return;
  world_->Chance(0.6) ? ForceRelease() : CloseSession();
}

void SimOperator::Ask(std::function<engine::Command(engine::CommandHead)> make) {
  const uint64_t channel = daemon_->OpenChannel({[this](const engine::Event& event) {
                                                   const auto* reply =
                                                       std::get_if<engine::Reply>(&event.body);
                                                   if (reply != nullptr) OnReply(*reply);
                                                 },
                                                 [] {}});
  daemon_->Send(channel, [channel, make = std::move(make)](BootTime received) {
    return make(engine::CommandHead{{channel, 1}, "operator", received});
  });
}

void SimOperator::ForceRelease() {
  const std::string key = keys_[world_->Between(0, keys_.size() - 1)];
  world_->Note(absl::StrCat("an operator takes ", key, " away"));
  Ask([key](engine::CommandHead head) {
    return engine::ForceRelease{std::move(head), {"default", key}, "", false, ""};
  });
}

void SimOperator::CloseSession() {
  Ask([](engine::CommandHead head) { return engine::ListSessions{std::move(head), 0}; });
}

void SimOperator::OnReply(const engine::Reply& reply) {
  if (const auto* forced = std::get_if<engine::ForceAnswer>(&reply.result)) {
    ended_ += forced->forced.holds;
  } else if (const auto* closed = std::get_if<engine::CloseSessionAnswer>(&reply.result)) {
    ended_ += closed->holds;
  } else if (const auto* list = std::get_if<engine::SessionsAnswer>(&reply.result)) {
    if (list->sessions.empty() || !daemon_->alive()) return;
    const std::string id = list->sessions[world_->Between(0, list->sessions.size() - 1)].session_id;
    world_->Note(absl::StrCat("an operator closes the session ", id));
    Ask([id](engine::CommandHead head) { return engine::CloseSession{std::move(head), id}; });
  }
}

}  // namespace holdfast::sim
