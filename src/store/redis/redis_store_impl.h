// SPDX-License-Identifier: Apache-2.0
//
// The Redis store itself: takes requests, groups them into script calls, turns
// answers into replies, and tells of ups, downs and grace.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "src/store/redis/clock_watch.h"
#include "src/store/redis/codec.h"
#include "src/store/redis/connection.h"
#include "src/store/redis/hold_ledger.h"
#include "src/store/redis/opening.h"
#include "src/store/redis/pipeline.h"
#include "src/store/redis/redis_store.h"
#include "src/store/redis/subscriber.h"

namespace holdfast::redis {

class RedisStore final : public Store,
                         private Connection::Owner,
                         private Pipeline::Host,
                         private Subscriber::Listener {
 public:
  RedisStore(RedisStoreOptions options, RedisUrl url, uv_loop_t* loop);
  ~RedisStore() override;

  absl::Status Start(StoreListener* listener) override;
  void Submit(StoreRequest request) override { queue_.push_back(std::move(request)); }
  void Flush() override;
  std::string Describe() const override { return url_.Describe(); }
  void Stop() override;

 private:
  // The connection.
  void OnConnected() override;
  void OnDisconnected(const std::string& why) override;
  void OnOpened(absl::StatusOr<Opening::Outcome> outcome);
  void LearnGrace(absl::Duration remaining, const std::string& why);
  void OnGraceTimer();
  void WatchClock(int64_t server_ms, BootTime sent);

  // Requests going out.
  void Dispatch(StoreRequest request);
  void AddToBatch(Script script, StoreRequest request);
  void SendBatch();
  void SendList(StoreRequest request);
  // Waiters of this daemon stand in lines: it has to give signs of life.
  void StandInLine();
  void OnBeatTimer();
  void SendLook(std::unique_ptr<Command> command) { pipeline_.Send(std::move(command)); }
  void Encode(const Command& command, absl::string_view head, absl::string_view script,
              RespWriter* out) override;

  // Answers coming in.
  Pipeline::Verdict OnAnswer(std::unique_ptr<Command> command, const redisReply& reply) override;
  Pipeline::Verdict OnErrorAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnApplyAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnBeatAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnForceAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnRenewAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnLookAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  Pipeline::Verdict OnWatchAnswer(std::unique_ptr<Command> command, const redisReply& reply);
  void OnScanAnswer(StoreRequest request, const redisReply& reply);
  void OnLost(std::unique_ptr<Command> command, bool maybe_applied) override;
  void AskWho() override;
  void GiveUp(const std::string& why) override { connection_.Break(why); }

  // Subscriptions.
  void OnSubscribed(uint64_t request_id) override {
    if (!OnWatchSubscribed(request_id)) Answer(request_id, Subscribed{});
  }
  void OnSubscriptionLost(uint64_t request_id) override;
  void OnWake(const KeyName& name, absl::string_view daemon) override;

  // Watching (redis_store_watch.cc).
  void BeginWatch(StoreRequest request);
  void EndWatch();
  // The connection is over: whoever watches asks anew.
  void ForgetWatch();
  bool OnWatchSubscribed(uint64_t request_id);
  void OnWatchTimer();
  void SayWatching();
  // Has the ledger know of holds that are there already, one listing after the other.
  void LookThrough(const WatchOp& op);
  void LookFurther();
  void OnOwnLook(const Result& result);
  void ArmLedger();
  void OnLedgerTimer();
  void OnNews(absl::string_view message) override;
  void OnNewsGap() override;
  void EmitNews(KeyNews news);
  void NoteAudience(bool watched);
  void Publish(const std::string& message);
  // Where something could not be told, everybody who watches is told that.
  void TellOfGaps();

  // Request id 0 is the store's own.
  void Answer(uint64_t id, Result result);
  void AnswerUnreachable(uint64_t id, bool maybe_applied);
  void Emit(StoreEvent event);
  void Log(LogLevel level, absl::string_view message) const;

  const RedisStoreOptions options_;
  const RedisUrl url_;
  const Clock& clock_;
  const KeyLayout layout_;
  StoreListener* listener_ = nullptr;  // null before Start() and after Stop()
  ScriptSet scripts_;
  Connection connection_;
  Opening opening_;
  Pipeline pipeline_;
  Subscriber subscriber_;
  UvTimer grace_timer_;
  UvTimer beat_timer_;
  UvTimer watch_timer_;
  UvTimer ledger_timer_;
  ClockWatch clock_watch_;
  StringPacker packer_;

  bool started_ = false;
  bool up_ = false;
  std::string incarnation_;
  std::string life_;  // the daemon's, as its first place in a line said
  BootTime stands_until_;
  std::string down_detail_;
  BootTime grace_until_;  // the beginning of time: none is known
  bool watching_ = false;
  bool watch_said_ = false;  // the state says that somebody watches, because we said so
  absl::flat_hash_map<uint64_t, StoreRequest> starting_watches_;  // not subscribed yet
  std::deque<ListOp> to_look_through_;
  HoldLedger ledger_;
  bool audience_ = false;  // somebody watches, as a script last said
  bool untold_ = false;    // something was not told
  std::vector<StoreRequest> queue_;
  std::vector<StoreRequest> flushing_;  // kept for its memory
  std::unique_ptr<Command> batch_;      // acquires and releases, or renewals, that go out together
};

}  // namespace holdfast::redis
