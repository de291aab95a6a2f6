// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/pipeline.h"

#include <utility>

#include "src/store/redis/codec.h"

namespace holdfast::redis {
namespace {

// After that many refusals a script is sent as text, which no flush can come in front of.
constexpr int kAttemptsByDigest = 2;

const KeyName* NameOf(const StoreRequest& request) {
  if (const auto* op = std::get_if<AcquireOp>(&request.op)) return &op->hold.name;
  if (const auto* op = std::get_if<ReleaseOp>(&request.op)) return &op->hold.name;
  if (const auto* op = std::get_if<PassOnOp>(&request.op)) return &op->name;
  if (const auto* op = std::get_if<RenewOp>(&request.op)) return &op->hold.name;
  if (const auto* op = std::get_if<ForceOp>(&request.op)) return &op->name;
  return nullptr;
}

}  // namespace

void Command::OnReply(const redisReply* reply) {
  pipeline_->OnReply(std::unique_ptr<Command>(this), reply);
}

void Pipeline::Send(std::unique_ptr<Command> command) {
  command->pipeline_ = this;
  command->sequence_ = next_sequence_++;
  if (draining_) {
    waiting_.push_back(std::move(command));
  } else {
    Transmit(std::move(command));
  }
}

void Pipeline::Transmit(std::unique_ptr<Command> command) {
  const Script script = command->script;
  command->unknown_script_ = false;
  if (command->attempts_++ < kAttemptsByDigest) {
    host_->Encode(*command, "EVALSHA", scripts_->sha(script), &writer_);
  } else {
    host_->Encode(*command, "EVAL", scripts_->text(script), &writer_);
  }
  command->sent = clock_.Now();
  if (!connection_->Send(writer_.wire(), command.get())) {
    return host_->OnLost(std::move(command), false);
  }
  ++in_flight_;
  static_cast<void>(command.release());  // comes back with its reply
}

void Pipeline::OnReply(std::unique_ptr<Command> command, const redisReply* reply) {
  --in_flight_;
  if (reply == nullptr) return host_->OnLost(std::move(command), true);
  if (IsError(reply) && KindOfError(TextOf(reply)) == ErrorKind::kNoScript) {
    reload_ = true;
    Drain();
    command->unknown_script_ = true;
    again_.push_back(std::move(command));
  } else {
    std::vector<std::string> keys;
    const uint64_t sequence = command->sequence_;
    if (draining_) {
      ForKeys(*command, [&](const std::string& key) { keys.push_back(key); });
    }
    Verdict verdict = host_->OnAnswer(std::move(command), *reply);
    if (verdict.ask_who) {
      ask_who_ = true;
      Drain();
    }
    if (verdict.again != nullptr) {
      again_.push_back(std::move(verdict.again));
    } else {
      for (std::string& key : keys) carried_out_[std::move(key)] = sequence;
    }
  }
  if (!draining_ || in_flight_ > 0 || asking_) return;
  if (OrderBroken()) {
    return host_->GiveUp("the server's scripts were flushed and loaded again under our calls");
  }
  if (!ask_who_) return Resume();
  ask_who_ = false;
  asking_ = true;
  host_->AskWho();
}

void Pipeline::Resume() {
  asking_ = false;
  if (reload_) Reload();
  reload_ = false;
  draining_ = false;
  carried_out_.clear();
  std::deque<std::unique_ptr<Command>> next = std::move(again_);
  again_.clear();
  for (std::unique_ptr<Command>& command : waiting_) next.push_back(std::move(command));
  waiting_.clear();
  for (std::unique_ptr<Command>& command : next) Transmit(std::move(command));
}

void Pipeline::Reload() {
  // All or none, whoever flushes meanwhile: else a later call might be carried out without an
  // earlier.
  const auto ignore = [](const redisReply*) {};
  connection_->Call({"MULTI"}, ignore);
  for (Script script : kAllScripts) {
    connection_->Call({"SCRIPT", "LOAD", scripts_->text(script)}, ignore);
  }
  connection_->Call({"EXEC"}, ignore);
}

void Pipeline::Reset() {
  draining_ = reload_ = ask_who_ = asking_ = false;
  carried_out_.clear();
  std::deque<std::unique_ptr<Command>> lost = std::move(again_);
  again_.clear();
  for (std::unique_ptr<Command>& command : waiting_) lost.push_back(std::move(command));
  waiting_.clear();
  for (std::unique_ptr<Command>& command : lost) host_->OnLost(std::move(command), false);
}

// Another daemon may load the scripts between two calls of ours, so that the later one was carried
// out and the earlier was not.
bool Pipeline::OrderBroken() const {
  bool broken = false;
  for (const std::unique_ptr<Command>& command : again_) {
    // After a change of incarnation nothing is granted, so that order does not matter.
    if (!command->unknown_script_) continue;
    ForKeys(*command, [&](const std::string& key) {
      const auto it = carried_out_.find(key);
      broken = broken || (it != carried_out_.end() && it->second > command->sequence_);
    });
  }
  return broken;
}

void Pipeline::ForKeys(const Command& command,
                       const std::function<void(const std::string&)>& fn) const {
  for (const StoreRequest& request : command.requests) {
    if (const KeyName* name = NameOf(request)) fn(layout_.LockKey(*name));
  }
}

}  // namespace holdfast::redis
