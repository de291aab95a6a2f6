// SPDX-License-Identifier: Apache-2.0
#include "src/engine/engine.h"

#include "src/engine/core.h"

namespace holdfast::engine {

Engine::Engine(EngineOptions options, IdSource* ids)
    : core_(std::make_unique<EngineCore>(options, ids)) {}

Engine::~Engine() = default;

void Engine::Handle(Command&& command, BootTime now) {
  core_->set_now(now);
  std::visit([&](auto&& body) { core_->Handle(std::move(body)); }, std::move(command));
  core_->FinishInput();
}

void Engine::OnStoreReply(StoreReply&& reply, BootTime now) {
  core_->set_now(now);
  core_->OnReply(reply);
  core_->FinishInput();
}

void Engine::OnStoreEvent(const StoreEvent& event, BootTime now) {
  core_->set_now(now);
  core_->OnStoreEvent(event);
  core_->FinishInput();
}

void Engine::Advance(BootTime now) {
  core_->set_now(now);
  core_->Advance();
  core_->FinishInput();
}

BootTime Engine::NextDeadline() const { return core_->NextDeadline(); }

Output Engine::TakeOutput() {
  Output out;
  core_->TakeOutput(&out);
  return out;
}

void Engine::TakeOutput(Output* out) { core_->TakeOutput(out); }

EngineStatus Engine::status() const { return core_->status(); }

std::optional<std::string> Engine::FindInconsistency() const { return core_->FindInconsistency(); }

}  // namespace holdfast::engine
