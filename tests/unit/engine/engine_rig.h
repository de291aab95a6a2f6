// SPDX-License-Identifier: Apache-2.0
//
// An engine with a store that answers at once, on a clock that only the test
// moves. The store can be held up, cut off, or made to lose its answers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/engine.h"
#include "src/store/memory/lock_table.h"

namespace holdfast::engine {

class CountedIds final : public IdSource {
 public:
  std::string NewId() override { return absl::StrCat("id-", 1'000'000'000'000'000 + ++last_); }
  std::string NewShortId() override { return NewId(); }

 private:
  int64_t last_ = 0;
};

class CountedTokens final : public memory::TokenSource {
 public:
  std::optional<int64_t> Next() override { return ++last_; }

 private:
  int64_t last_ = 0;
};

class EngineRig {
 public:
  explicit EngineRig(EngineOptions options = {}) : engine_(options, &ids_), table_(&tokens_) {
    Up();
  }

  // ---- the store
  void Up() {
    connected_ = true;
    engine_.OnStoreEvent(StoreEvent{StoreEvent::Kind::kUp, {}, {}, ""}, now_);
    Settle();
  }
  // What is held up is answered "may have been carried out"; `carry_out`: it was.
  void Down(bool carry_out) {
    connected_ = false;
    table_.news().Close();
    for (const StoreRequest& request : std::exchange(held_up_, {})) {
      if (carry_out) table_.Apply(request, now_);
      engine_.OnStoreReply(
          StoreReply{request.id, StoreFailure{StoreFailureKind::kUnreachable, true, "broken"}},
          now_);
    }
    engine_.OnStoreEvent(StoreEvent{StoreEvent::Kind::kDown, {}, {}, ""}, now_);
    Settle();
  }
  void HoldUp() { answering_ = false; }
  void LetGo() {
    answering_ = true;
    CarryAll(std::exchange(held_up_, {}));
    Settle();
  }
  // The same, the latest first.
  void LetGoBackwards() {
    std::vector<StoreReply> replies;
    const std::vector<StoreRequest> requests = std::exchange(held_up_, {});
    for (size_t i = 0; i < requests.size(); ++i) {
      const bool followed = i + 1 < requests.size() && FollowsRelease(requests[i], requests[i + 1]);
      replies.push_back(table_.Apply(requests[i], now_, followed));
    }
    answering_ = true;
    while (!replies.empty()) {
      engine_.OnStoreReply(std::move(replies.back()), now_);
      replies.pop_back();
    }
    Settle();
  }
  const std::vector<StoreRequest>& held_up() const { return held_up_; }
  memory::LockTable& table() { return table_; }
  void Flush() {
    for (const char* key : {"k", "a", "b"}) table_.Restore({"default", key}, std::nullopt);
  }
  int64_t renewals() const { return renewals_; }
  int64_t tells() const { return tells_; }

  // ---- the clock
  BootTime now() const { return now_; }
  // Goes on by `delay`, stopping at each deadline on the way.
  void Pass(absl::Duration delay) {
    const BootTime end = now_ + delay;
    while (engine_.NextDeadline() <= end) {
      now_ = std::max(now_, engine_.NextDeadline());
      engine_.Advance(now_);
      Settle();
    }
    now_ = end;
    engine_.Advance(now_);
    Settle();
  }

  // ---- commands; each answers of its request id
  std::string Open(uint64_t channel, absl::Duration ttl = absl::Seconds(10)) {
    OpenSession open;
    open.head = Head(channel, 0);
    open.ttl = ttl;
    Do(open);
    const auto opened = Find<SessionOpened>(channel);
    return opened.has_value() ? opened->session_id : "";
  }
  Acquire MakeAcquire(const std::string& key, const std::string& owner = "") {
    Acquire acquire;
    acquire.name = {"default", key};
    acquire.owner = owner;
    acquire.lease = absl::Seconds(30);
    acquire.max_hold = absl::ZeroDuration();
    return acquire;
  }
  uint64_t Ask(uint64_t channel, Acquire acquire) {
    acquire.head = Head(channel, ++last_request_);
    Do(acquire);
    return last_request_;
  }
  Grant Take(uint64_t channel, Acquire acquire) {
    const std::optional<Grant> grant = Answer<Grant>(channel, Ask(channel, std::move(acquire)));
    EXPECT_TRUE(grant.has_value());
    return grant.value_or(Grant());
  }
  uint64_t GiveUp(uint64_t channel, const Grant& grant, const std::string& command_id = "") {
    Release release;
    release.head = Head(channel, ++last_request_);
    release.name = grant.name;
    release.owner = grant.owner;
    release.hold_id = grant.hold_id;
    release.command_id = command_id;
    Do(release);
    return last_request_;
  }
  template <typename T>
  uint64_t Tell(uint64_t channel, T command) {
    command.head = Head(channel, ++last_request_);
    Do(command);
    return last_request_;
  }
  void Do(Command command) {
    engine_.Handle(std::move(command), now_);
    Settle();
  }

  // ---- what came back
  template <typename T>
  std::optional<T> Answer(uint64_t channel, uint64_t request) {
    for (const Event& event : events_) {
      const auto* reply = std::get_if<Reply>(&event.body);
      if (reply == nullptr || event.channel != channel || reply->request_id != request) continue;
      const T* answer = std::get_if<T>(&reply->result);
      return answer == nullptr ? std::nullopt : std::optional<T>(*answer);
    }
    return std::nullopt;
  }
  Reason Refused(uint64_t channel, uint64_t request) {
    const auto status = Answer<absl::Status>(channel, request);
    return status.has_value() ? ReasonOf(*status) : Reason::kUnspecified;
  }
  int Answers(uint64_t channel, uint64_t request) const {
    int count = 0;
    for (const Event& event : events_) {
      const auto* reply = std::get_if<Reply>(&event.body);
      count += reply != nullptr && event.channel == channel && reply->request_id == request;
    }
    return count;
  }
  // The newest event of a kind for a channel.
  template <typename T>
  std::optional<T> Find(uint64_t channel) const {
    for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
      if (event->channel != channel) continue;
      if (const T* body = std::get_if<T>(&event->body)) return *body;
    }
    return std::nullopt;
  }
  // All events of a kind that a channel got.
  template <typename T>
  std::vector<T> All(uint64_t channel) const {
    std::vector<T> all;
    for (const Event& event : events_) {
      const T* body = event.channel == channel ? std::get_if<T>(&event.body) : nullptr;
      if (body != nullptr) all.push_back(*body);
    }
    return all;
  }
  // How many events of a kind a channel got.
  template <typename T>
  int Count(uint64_t channel) const {
    int count = 0;
    for (const Event& event : events_) {
      count += event.channel == channel && std::holds_alternative<T>(event.body);
    }
    return count;
  }
  // Who holds the key by the store's word; empty: nobody.
  std::string OwnerOf(const std::string& key) {
    const StoreReply reply = table_.Apply(StoreRequest{1, InspectOp{{"default", key}}}, now_);
    const auto& report = std::get<KeyReport>(reply.result);
    return report.holders.empty() ? "" : report.holders[0].owner;
  }
  Engine& engine() { return engine_; }

 private:
  CommandHead Head(uint64_t channel, uint64_t request) const {
    return CommandHead{{channel, request}, "tester", now_};
  }
  void Carry(const StoreRequest& request, bool followed) {
    if (std::holds_alternative<UnwatchOp>(request.op)) table_.news().Close();
    if (const auto* tell = std::get_if<TellOp>(&request.op)) {
      ++tells_;
      table_.news().Tell(tell->news);
    }
    if (!HasAnswer(request)) return TellNews();
    renewals_ += std::holds_alternative<RenewOp>(request.op);
    engine_.OnStoreReply(table_.Apply(request, now_, followed), now_);
    for (const memory::LockTable::Freed& freed : table_.TakeFreed()) {
      engine_.OnStoreEvent(StoreEvent{StoreEvent::Kind::kWake, freed.name, {}, "", freed.daemon},
                           now_);
    }
  }
  void CarryAll(const std::vector<StoreRequest>& requests) {
    for (size_t i = 0; i < requests.size(); ++i) {
      Carry(requests[i], i + 1 < requests.size() && FollowsRelease(requests[i], requests[i + 1]));
    }
    TellNews();
  }
  void TellNews() {
    for (KeyNews& news : table_.news().Take()) {
      StoreEvent event{StoreEvent::Kind::kNews, {}, {}, ""};
      event.news = std::make_shared<const KeyNews>(std::move(news));
      engine_.OnStoreEvent(event, now_);
    }
  }
  void Settle() {
    for (Output out = engine_.TakeOutput(); !out.empty(); out = engine_.TakeOutput()) {
      for (Event& event : out.events) events_.push_back(std::move(event));
      if (connected_ && answering_) {
        CarryAll(out.requests);
        continue;
      }
      for (const StoreRequest& request : out.requests) {
        if (!connected_ && !HasAnswer(request)) continue;
        if (!connected_) {
          engine_.OnStoreReply(
              StoreReply{request.id, StoreFailure{StoreFailureKind::kUnreachable, false, "down"}},
              now_);
        } else {
          held_up_.push_back(request);
        }
      }
    }
    const auto wrong = engine_.FindInconsistency();
    ASSERT_FALSE(wrong.has_value()) << *wrong;
  }

  CountedIds ids_;
  CountedTokens tokens_;
  Engine engine_;
  memory::LockTable table_;
  BootTime now_ = BootTime::FromNanos(3'600'000'000'000);
  bool connected_ = false;
  bool answering_ = true;
  std::vector<StoreRequest> held_up_;
  std::vector<Event> events_;
  uint64_t last_request_ = 0;
  int64_t renewals_ = 0;
  int64_t tells_ = 0;
};

// Owners long enough to be accepted.
inline constexpr char kAlice[] = "alice-of-the-tests";
inline constexpr char kBob[] = "bob-of-the-tests-too";
inline constexpr char kCarol[] = "carol-of-the-tests";

}  // namespace holdfast::engine
