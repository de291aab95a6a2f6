// SPDX-License-Identifier: Apache-2.0
//
// Script calls in flight on one connection, in order. A server that forgot its
// scripts, or that turned out to live another life than the connection thought,
// is not the caller's business: then nothing new goes out until every call in
// flight is answered, what was not carried out is sent again in its old order
// (after reloading the scripts, or asking who the server is), and the rest
// follows. So calls for one key are carried out in the order of submission.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/base/store_types.h"
#include "src/store/redis/connection.h"
#include "src/store/redis/key_layout.h"
#include "src/store/redis/script_set.h"

namespace holdfast::redis {

class Pipeline;

// One script call: acquires and releases, or renewals, or a look at some keys.
class Command final : public ReplyHandler {
 public:
  explicit Command(Script script) : script(script) {}
  void OnReply(const redisReply* reply) override;

  const Script script;
  std::vector<StoreRequest> requests;
  std::vector<KeyName> names;  // inspect: the keys still to be looked at
  ListPage page;               // inspect for a listing: what was found so far
  BootTime sent;

 private:
  friend class Pipeline;
  Pipeline* pipeline_ = nullptr;
  uint64_t sequence_ = 0;
  int attempts_ = 0;
  bool unknown_script_ = false;  // its last answer was NOSCRIPT
};

class Pipeline {
 public:
  // What to do beyond what the host did with a reply.
  struct Verdict {
    std::unique_ptr<Command> again;  // it was not carried out: send it again
    bool ask_who = false;            // the server is not who it was thought to be
  };

  class Host {
   public:
    virtual ~Host() = default;
    // Writes the whole call; `head` is EVALSHA or EVAL, `script` what it names.
    virtual void Encode(const Command& command, absl::string_view head, absl::string_view script,
                        RespWriter* out) = 0;
    virtual Verdict OnAnswer(std::unique_ptr<Command> command, const redisReply& reply) = 0;
    virtual void OnLost(std::unique_ptr<Command> command, bool maybe_applied) = 0;
    // Find out who the server is, then call Resume().
    virtual void AskWho() = 0;
    // Order can no longer be kept: break the connection.
    virtual void GiveUp(const std::string& why) = 0;
  };

  Pipeline(Connection* connection, ScriptSet* scripts, const KeyLayout& layout, const Clock& clock,
           Host* host)
      : connection_(connection), scripts_(scripts), layout_(layout), clock_(clock), host_(host) {}

  // Appends the call to the connection's output, or keeps it while the pipeline drains.
  void Send(std::unique_ptr<Command> command);

  void Resume();

  // The connection is over: what never went out is lost too.
  void Reset();

 private:
  friend class Command;

  void Transmit(std::unique_ptr<Command> command);
  void OnReply(std::unique_ptr<Command> command, const redisReply* reply);
  void Drain() { draining_ = true; }
  void Reload();
  bool OrderBroken() const;
  void ForKeys(const Command& command, const std::function<void(const std::string&)>& fn) const;

  Connection* const connection_;
  ScriptSet* const scripts_;
  const KeyLayout& layout_;
  const Clock& clock_;
  Host* const host_;
  RespWriter writer_;
  uint64_t next_sequence_ = 1;
  size_t in_flight_ = 0;

  bool draining_ = false;
  bool reload_ = false;
  bool ask_who_ = false;
  bool asking_ = false;
  std::deque<std::unique_ptr<Command>> again_;    // not carried out, in order
  std::deque<std::unique_ptr<Command>> waiting_;  // never sent, in order
  // While draining: the last call carried out for a key.
  absl::flat_hash_map<std::string, uint64_t> carried_out_;
};

}  // namespace holdfast::redis
