// SPDX-License-Identifier: Apache-2.0
//
// What the embedded store remembers over its own end, and when it waits instead.
#include "src/store/memory/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "tests/unit/store_memory/fakes.h"

namespace holdfast::memory {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kMaxLease = absl::Seconds(60);

class MemoryStoreTest : public ::testing::Test, public StoreListener {
 protected:
  MemoryStoreTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "/holdfast-XXXXXX");
    root_ = mkdtemp(name.data());
    options_.folder = root_ + "/state";
    options_.max_lease = kMaxLease;
    options_.clock = &clock_;
    options_.wall_clock = &wall_clock_;
    options_.boot_id = "boot-1";
    uv_loop_init(&loop_);
  }
  ~MemoryStoreTest() override {
    Stop();
    uv_loop_close(&loop_);
    std::filesystem::remove_all(root_);
  }

  void OnStoreReply(StoreReply reply) override { replies_.push_back(std::move(reply)); }
  void OnStoreEvent(StoreEvent event) override { events_.push_back(std::move(event)); }

  absl::Status TryStart() {
    store_ = MakeMemoryStore(options_, &loop_);
    absl::Status status = store_->Start(this);
    if (status.ok()) store_->Flush();
    return status;
  }
  void Start() {
    events_.clear();
    const absl::Status status = TryStart();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_FALSE(events_.empty());
    EXPECT_EQ(events_[0].kind, StoreEvent::Kind::kUp);
  }
  void Stop() {
    if (store_ != nullptr) store_->Stop();
    store_.reset();
    uv_run(&loop_, UV_RUN_NOWAIT);
  }
  // As a kill would leave it: the folder as it was at that moment, and none of Stop's work.
  void Kill() {
    const std::string copy = root_ + "/copy";
    std::filesystem::copy(options_.folder, copy);
    Stop();
    std::filesystem::remove_all(options_.folder);
    std::filesystem::rename(copy, options_.folder);
  }
  void Pass(absl::Duration duration) { clock_.now = clock_.now + duration; }

  template <typename Op>
  StoreReply Do(Op op) {
    StoreRequest request;
    request.id = 7;
    request.op = std::move(op);
    store_->Submit(std::move(request));
    replies_.clear();
    store_->Flush();
    EXPECT_EQ(replies_.size(), 1u);
    return replies_.empty() ? StoreReply() : replies_[0];
  }
  // The token, or 0 where the key was not granted.
  int64_t Token(const HoldRef& ref, absl::Duration lease = absl::Seconds(30)) {
    const StoreReply reply = Do(Take(ref, lease));
    const auto* granted = std::get_if<Granted>(&reply.result);
    return granted != nullptr ? granted->token : 0;
  }
  // What remains of the grace period; zero: none.
  absl::Duration Grace() {
    const StoreReply reply = Do(Take(Ref("probe", "probe", "probe"), absl::Milliseconds(100)));
    const auto* grace = std::get_if<InGrace>(&reply.result);
    return grace != nullptr ? grace->remaining : absl::ZeroDuration();
  }
  void Overwrite(const std::string& file, const std::string& content) {
    std::ofstream(options_.folder + "/" + file, std::ios::trunc) << content;
  }

  std::string root_;
  FakeClock clock_;
  FakeWallClock wall_clock_;
  MemoryStoreOptions options_;
  uv_loop_t loop_;
  std::unique_ptr<Store> store_;
  std::vector<StoreReply> replies_;
  std::vector<StoreEvent> events_;
};

TEST_F(MemoryStoreTest, AFolderThatTheStartMadeNeedsNoGrace) {
  options_.folder = root_ + "/several/levels/state";
  Start();
  EXPECT_EQ(Grace(), absl::ZeroDuration());
  struct stat info {};
  ASSERT_EQ(stat(options_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(MemoryStoreTest, AFolderThatWasThereButSaysNothingNeedsGrace) {
  std::filesystem::create_directory(options_.folder);
  Start();
  EXPECT_EQ(Grace(), kMaxLease);
}

TEST_F(MemoryStoreTest, WithoutAFolderEveryStartHasAGracePeriodThatEnds) {
  options_.folder.clear();
  Start();
  EXPECT_EQ(Grace(), kMaxLease);
  ASSERT_EQ(events_.back().kind, StoreEvent::Kind::kGrace);
  EXPECT_EQ(events_.back().remaining, kMaxLease);
  Pass(kMaxLease);
  EXPECT_GT(Token(Ref("alice")), 0);
  EXPECT_EQ(events_.back().kind, StoreEvent::Kind::kGrace);
  EXPECT_EQ(events_.back().remaining, absl::ZeroDuration());
}

TEST_F(MemoryStoreTest, NoGraceVouchesThatNobodyHolds) {
  options_.folder.clear();
  options_.no_grace = true;
  Start();
  EXPECT_GT(Token(Ref("alice")), 0);
}

TEST_F(MemoryStoreTest, HoldsOutliveAKillAsTheyAre) {
  Start();
  AcquireOp op = Take(Ref("alice", "hold", "key", "session"), absl::Seconds(30));
  op.note = "backup \xc3\xa4";
  op.op_id = "op1";
  op.max_hold = absl::Seconds(50);
  Do(op);
  const std::string long_key(limits::kMaxKeyBytes, 'k');
  ASSERT_GT(Token(Ref("alice", "hold", long_key)), 0);
  Do(Take(Ref("alice", "hold", "gone")));
  Do(Give(Ref("alice", "hold", "gone")));
  Kill();
  Pass(absl::Seconds(10));

  Start();
  EXPECT_EQ(Grace(), absl::ZeroDuration());
  const StoreReply reply = Do(Take(Ref("bob", "other")));
  const auto* busy = std::get_if<Busy>(&reply.result);
  ASSERT_NE(busy, nullptr);
  ASSERT_EQ(busy->holders.size(), 1u);
  EXPECT_EQ(busy->holders[0].note, op.note);
  EXPECT_EQ(busy->holders[0].expires_in, absl::Seconds(20));
  EXPECT_EQ(Token(Ref("bob", "other", long_key)), 0);
  EXPECT_GT(Token(Ref("bob", "other", "gone")), 0);

  const StoreReply repeat = Do(op);
  ASSERT_TRUE(std::holds_alternative<Granted>(repeat.result));
  EXPECT_TRUE(std::get<Granted>(repeat.result).replayed);
  const StoreReply renewal = Do(RenewOp{op.hold, absl::Seconds(60)});
  ASSERT_TRUE(std::holds_alternative<Renewed>(renewal.result));
  EXPECT_EQ(std::get<Renewed>(renewal.result).lease_remaining, absl::Seconds(40));
}

TEST_F(MemoryStoreTest, ReadersAndPermitsOutliveAKillAsTheyAre) {
  Start();
  AcquireOp read = Take(Ref("alice", "h1", "read"));
  read.mode = Mode::kShared;
  const int64_t token = std::get<Granted>(Do(read).result).token;
  AcquireOp permit = Take(Ref("alice", "h1", "permit"));
  permit.mode = Mode::kPermit;
  permit.limit = 2;
  permit.min_hold = absl::Seconds(20);
  const int64_t number = std::get<Granted>(Do(permit).result).token;
  permit.hold = Ref("bob", "h2", "permit");
  Do(permit);
  Do(Give(permit.hold));
  Kill();
  Pass(absl::Seconds(10));

  Start();
  read.hold = Ref("bob", "h2", "read");
  EXPECT_EQ(std::get<Granted>(Do(read).result).token, token);
  permit.hold = Ref("alice", "h1", "permit");
  EXPECT_EQ(std::get<Granted>(Do(permit).result).token, number);
  permit.hold = Ref("carol", "h3", "permit");
  ASSERT_TRUE(std::holds_alternative<Busy>(Do(permit).result)) << "bob's permit is kept back";
  Pass(absl::Seconds(10));
  EXPECT_TRUE(std::holds_alternative<Granted>(Do(permit).result));
  permit.limit = 3;
  permit.hold = Ref("dave", "h4", "permit");
  EXPECT_TRUE(std::holds_alternative<ModeRefused>(Do(permit).result));
}

TEST_F(MemoryStoreTest, AReleaseIsNotForgottenByAKill) {
  Start();
  Token(Ref("alice"));
  Do(Give(Ref("alice")));
  Kill();
  Start();
  EXPECT_GT(Token(Ref("bob")), 0);
}

TEST_F(MemoryStoreTest, AnotherBootForgetsHoldsAndWaitsForTheLongestLeaseEverAllowed) {
  options_.max_lease = absl::Minutes(10);
  Start();
  const int64_t token = Token(Ref("alice"));
  Kill();

  options_.max_lease = kMaxLease;
  options_.boot_id = "boot-2";
  clock_.now = BootTime::FromNanos(500);
  wall_clock_.millis -= 3'600'000;
  Start();
  EXPECT_EQ(Grace(), absl::Minutes(10));
  EXPECT_THAT(events_.back().detail, HasSubstr("another boot"));
  Pass(absl::Minutes(10));
  EXPECT_GT(Token(Ref("bob")), token);
}

TEST_F(MemoryStoreTest, AGracePeriodGoesOnOverARestart) {
  std::filesystem::create_directory(options_.folder);
  Start();
  Pass(absl::Seconds(20));
  Kill();
  Start();
  EXPECT_EQ(Grace(), absl::Seconds(40));
  Pass(absl::Seconds(40));
  EXPECT_EQ(Grace(), absl::ZeroDuration());
  Kill();
  Start();
  EXPECT_EQ(Grace(), absl::ZeroDuration());
}

TEST_F(MemoryStoreTest, ABootClockThatWentBackIsNotTrusted) {
  Start();
  Token(Ref("alice"));
  Kill();
  clock_.now = BootTime::FromNanos(5);
  Start();
  EXPECT_EQ(Grace(), kMaxLease);
}

TEST_F(MemoryStoreTest, AnUnreadableFileMeansGraceAndAFreshBeginning) {
  for (const char* file : {"state.json", "holds.lmdb", "tokens"}) {
    for (const char* content : {"", "\x01garbage that is longer than a number"}) {
      SCOPED_TRACE(file);
      Start();
      Token(Ref("alice", "hold", file));
      Kill();
      Overwrite(file, content);
      Start();
      EXPECT_EQ(Grace(), kMaxLease);
      Pass(kMaxLease);
      EXPECT_GT(Token(Ref("bob", "hold", file)), 0);
      Stop();
    }
  }
}

TEST_F(MemoryStoreTest, AHoldsFileThatWasCutShortOrRemovedMeansGrace) {
  Start();
  Token(Ref("alice"));
  Kill();
  std::filesystem::resize_file(options_.folder + "/holds.lmdb", 8192);
  Start();
  EXPECT_EQ(Grace(), kMaxLease);
  Pass(kMaxLease);
  Token(Ref("alice"));
  Kill();
  std::filesystem::remove(options_.folder + "/holds.lmdb");
  Start();
  EXPECT_EQ(Grace(), kMaxLease);
}

TEST_F(MemoryStoreTest, TokensGrowOverAKillAlsoWhenTheWallClockWasSetBack) {
  Start();
  const int64_t first = Token(Ref("alice"), absl::Seconds(1));
  Kill();
  wall_clock_.millis -= 3'600'000;
  Pass(absl::Seconds(2));
  Start();
  EXPECT_GT(Token(Ref("alice")), first);
}

TEST_F(MemoryStoreTest, ACleanStopGivesTheUnusedTokensBack) {
  Start();
  const int64_t first = Token(Ref("alice"), absl::Seconds(1));
  Stop();
  Pass(absl::Seconds(2));
  Start();
  EXPECT_EQ(Token(Ref("alice")), first + 1);
}

TEST_F(MemoryStoreTest, ASecondDaemonIsRefused) {
  Start();
  const std::unique_ptr<Store> second = MakeMemoryStore(options_, &loop_);
  const absl::Status status = second->Start(this);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("another holdfastd"));
}

TEST_F(MemoryStoreTest, NewerDataIsRefusedAndLeftAlone) {
  Start();
  Stop();
  Overwrite("state.json", "{\"format\": 2}");
  const absl::Status status = TryStart();
  EXPECT_EQ(ReasonOf(status), Reason::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("format 2"));
  std::string content;
  std::getline(std::ifstream(options_.folder + "/state.json"), content);
  EXPECT_EQ(content, "{\"format\": 2}");
}

TEST_F(MemoryStoreTest, WhatCannotBeWrittenIsUndoneAndSaidSo) {
  options_.max_bytes = 64 * 1024;
  Start();
  Token(Ref("alice", "hold", "first"));
  AcquireOp big = Take(Ref("alice"));
  big.note = std::string(limits::kMaxNoteBytes, 'n');
  int granted = 0;
  std::optional<StoreFailure> failure;
  while (!failure.has_value() && granted < 1000) {
    big.hold.name.key = absl::StrCat("key", granted);
    const StoreReply reply = Do(big);
    if (const auto* failed = std::get_if<StoreFailure>(&reply.result)) failure = *failed;
    if (std::holds_alternative<Granted>(reply.result)) ++granted;
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, StoreFailureKind::kOutOfMemory);
  EXPECT_FALSE(failure->maybe_applied);

  const StoreReply look = Do(InspectOp{big.hold.name});
  EXPECT_TRUE(std::get<KeyReport>(look.result).free());
  const StoreReply first = Do(InspectOp{{"default", "first"}});
  EXPECT_FALSE(std::get<KeyReport>(first.result).free());
}

TEST_F(MemoryStoreTest, SubscribersHearOfReleaseAndExpiry) {
  Start();
  Token(Ref("alice", "hold", "a"), absl::Seconds(5));
  Token(Ref("alice", "hold", "b"));
  Token(Ref("alice", "hold", "c"));
  for (const char* key : {"a", "b", "c"}) Do(SubscribeOp{{"default", key}});
  StoreRequest unsubscribe;
  unsubscribe.id = 8;
  unsubscribe.op = UnsubscribeOp{{"default", "c"}};
  store_->Submit(unsubscribe);
  events_.clear();
  Do(Give(Ref("alice", "hold", "b")));
  Do(Give(Ref("alice", "hold", "c")));
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].kind, StoreEvent::Kind::kWake);
  EXPECT_EQ(events_[0].name.key, "b");

  Pass(absl::Seconds(5));
  store_->Flush();
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].name.key, "a");
}

TEST_F(MemoryStoreTest, TheLoopsTimerFreesWhatIsOver) {
  Start();
  Token(Ref("alice"), absl::Milliseconds(1));
  Do(SubscribeOp{{"default", "key"}});
  events_.clear();
  Pass(absl::Seconds(1));
  while (events_.empty()) uv_run(&loop_, UV_RUN_ONCE);
  EXPECT_EQ(events_[0].kind, StoreEvent::Kind::kWake);
}

}  // namespace
}  // namespace holdfast::memory
