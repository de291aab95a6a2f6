// SPDX-License-Identifier: Apache-2.0
//
// SHARED and PERMIT in the line: who is tried when, and what is answered.
#include "tests/unit/engine/engine_rig.h"

namespace holdfast::engine {
namespace {

class Modes : public ::testing::Test {
 protected:
  Acquire Read(const std::string& owner = "", absl::Duration wait = absl::ZeroDuration()) {
    return Make(Mode::kShared, owner, wait);
  }
  Acquire Write(const std::string& owner = "", absl::Duration wait = absl::ZeroDuration()) {
    return Make(Mode::kExclusive, owner, wait);
  }
  Acquire Permit(uint32_t limit, const std::string& owner = "",
                 absl::Duration wait = absl::ZeroDuration()) {
    Acquire acquire = Make(Mode::kPermit, owner, wait);
    acquire.limit = limit;
    return acquire;
  }
  bool Granted(uint64_t channel, uint64_t request) {
    return rig_.Answer<Grant>(channel, request).has_value();
  }

  EngineRig rig_;

 private:
  Acquire Make(Mode mode, const std::string& owner, absl::Duration wait) {
    Acquire acquire = rig_.MakeAcquire("k", owner);
    acquire.mode = mode;
    acquire.wait = wait;
    return acquire;
  }
};

constexpr absl::Duration kLong = absl::Minutes(1);

TEST_F(Modes, ReadersHoldTogetherAndTheGrantSaysSo) {
  rig_.Open(1);
  const Grant one = rig_.Take(1, Read(kAlice));
  const Grant two = rig_.Take(2, Read(kBob));
  EXPECT_EQ(one.mode, Mode::kShared);
  EXPECT_EQ(two.token, one.token);
  const auto refused = rig_.Answer<NotAcquired>(3, rig_.Ask(3, Write(kCarol)));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->holders.size(), 2u) << "the session's and the bare lease";
}

TEST_F(Modes, OneReleaseWakesAllReaders) {
  rig_.Open(1);
  const Grant written = rig_.Take(1, Write(kAlice));
  std::vector<uint64_t> readers;
  for (uint64_t channel = 10; channel < 20; ++channel) {
    readers.push_back(rig_.Ask(channel, Read("", kLong)));
  }
  const uint64_t writer = rig_.Ask(30, Write("", kLong));
  const uint64_t late = rig_.Ask(31, Read("", kLong));
  rig_.GiveUp(1, written);
  for (size_t i = 0; i < readers.size(); ++i) EXPECT_TRUE(Granted(10 + i, readers[i])) << i;
  EXPECT_FALSE(Granted(30, writer));
  EXPECT_FALSE(Granted(31, late)) << "behind the writer";
}

TEST_F(Modes, AWaitingWriterIsNotStarvedByArrivingReaders) {
  rig_.Open(1);
  rig_.Open(2);
  const Grant one = rig_.Take(1, Read(kAlice));
  const uint64_t writer = rig_.Ask(3, Write("", kLong));
  const uint64_t reader = rig_.Ask(4, Read("", kLong));
  const uint64_t known = rig_.Ask(2, Read(kBob, kLong));
  EXPECT_FALSE(Granted(4, reader));
  EXPECT_FALSE(Granted(2, known));
  EXPECT_TRUE(rig_.Answer<NotAcquired>(5, rig_.Ask(5, Read())).has_value()) << "nor without a wait";
  EXPECT_EQ(rig_.Take(1, Read(kAlice)).hold_count, 2u) << "who reads already passes";
  rig_.GiveUp(1, one);
  EXPECT_FALSE(Granted(3, writer));
  rig_.GiveUp(1, one);
  const auto written = rig_.Answer<Grant>(3, writer);
  ASSERT_TRUE(written.has_value());
  EXPECT_FALSE(Granted(4, reader));
  rig_.GiveUp(3, *written);
  EXPECT_TRUE(Granted(4, reader));
  EXPECT_TRUE(Granted(2, known));
}

TEST_F(Modes, AWriterThatGivesUpLetsTheReadersBehindItIn) {
  rig_.Open(1);
  rig_.Take(1, Read(kAlice));
  rig_.Ask(2, Write("", absl::Milliseconds(500)));
  const uint64_t reader = rig_.Ask(3, Read("", kLong));
  rig_.Pass(absl::Milliseconds(499));
  EXPECT_FALSE(Granted(3, reader));
  rig_.Pass(absl::Milliseconds(1));
  EXPECT_TRUE(Granted(3, reader));
}

TEST_F(Modes, ReadersAndPermitsThatArriveTogetherNeedNoWait) {
  rig_.HoldUp();
  std::vector<uint64_t> readers;
  for (uint64_t channel = 10; channel < 15; ++channel) {
    readers.push_back(rig_.Ask(channel, Read(channel % 2 == 0 ? "" : std::string(kAlice) + "x")));
  }
  const uint64_t writer = rig_.Ask(20, Write());
  rig_.LetGo();
  for (size_t i = 0; i < readers.size(); ++i) EXPECT_TRUE(Granted(10 + i, readers[i])) << i;
  EXPECT_EQ(rig_.Answer<NotAcquired>(20, writer)->reason, NotAcquiredReason::kBusy);
}

TEST_F(Modes, WhoNeedsNoWaitIsToldBusyAsSoonAsThoseInFrontWait) {
  rig_.Take(1, Write(kAlice));
  rig_.HoldUp();
  const uint64_t first = rig_.Ask(2, Permit(2, "", kLong));
  std::vector<uint64_t> others;
  for (uint64_t channel = 10; channel < 15; ++channel) {
    others.push_back(rig_.Ask(channel, Permit(2)));
  }
  rig_.LetGo();
  EXPECT_EQ(rig_.Answers(2, first), 0);
  for (size_t i = 0; i < others.size(); ++i) {
    const auto refused = rig_.Answer<NotAcquired>(10 + i, others[i]);
    ASSERT_TRUE(refused.has_value()) << i;
    EXPECT_EQ(refused->holders.size(), 1u);
  }
}

TEST_F(Modes, APermitIsGrantedInTurnAsEachBecomesFree) {
  rig_.Open(1);
  const Grant one = rig_.Take(1, Permit(2, kAlice));
  const Grant two = rig_.Take(1, Permit(2, kBob));
  EXPECT_NE(one.token, two.token);
  std::vector<uint64_t> waiting;
  for (uint64_t channel = 10; channel < 13; ++channel) {
    waiting.push_back(rig_.Ask(channel, Permit(2, "", kLong)));
  }
  rig_.GiveUp(1, two);
  EXPECT_TRUE(Granted(10, waiting[0]));
  EXPECT_FALSE(Granted(11, waiting[1]));
  rig_.GiveUp(1, one);
  EXPECT_TRUE(Granted(11, waiting[1]));
  EXPECT_FALSE(Granted(12, waiting[2]));
}

TEST_F(Modes, AllPermitsThatBecameFreeAreGrantedAtOnce) {
  const Grant written = rig_.Take(1, Write(kAlice));
  std::vector<uint64_t> waiting;
  for (uint64_t channel = 10; channel < 14; ++channel) {
    waiting.push_back(rig_.Ask(channel, Permit(3, "", kLong)));
  }
  rig_.GiveUp(1, written);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Granted(10 + i, waiting[i]), i < 3) << i;
}

TEST_F(Modes, APermitThatRanOutIsGrantedOn) {
  Acquire brief = Permit(2, kAlice);
  brief.lease = absl::Seconds(2);
  rig_.Take(1, brief);
  rig_.Take(2, Permit(2, kBob));
  const uint64_t waiting = rig_.Ask(3, Permit(2, "", kLong));
  rig_.Pass(absl::Milliseconds(1999));
  EXPECT_FALSE(Granted(3, waiting));
  rig_.Pass(absl::Milliseconds(3));
  EXPECT_TRUE(Granted(3, waiting));
}

TEST_F(Modes, AReaderIsRefusedTheWriteInsteadOfWaitingForItself) {
  rig_.Open(1);
  rig_.Take(1, Read(kAlice));
  EXPECT_EQ(rig_.Refused(1, rig_.Ask(1, Write(kAlice, kLong))), Reason::kUpgradeRefused);
  rig_.Take(2, Read(kBob));
  rig_.Ask(3, Write("", kLong));
  EXPECT_EQ(rig_.Refused(1, rig_.Ask(1, Write(kAlice, kLong))), Reason::kUpgradeRefused)
      << "behind another writer, too";
}

TEST_F(Modes, AReadInsideAWriteIsAWrite) {
  rig_.Open(1);
  const Grant written = rig_.Take(1, Write(kAlice));
  const Grant read = rig_.Take(1, Read(kAlice));
  EXPECT_EQ(read.mode, Mode::kExclusive);
  EXPECT_EQ(read.hold_id, written.hold_id);
  EXPECT_EQ(rig_.Answer<ReleaseAnswer>(1, rig_.GiveUp(1, read))->remaining_count, 1u);
  EXPECT_TRUE(rig_.Answer<NotAcquired>(2, rig_.Ask(2, Read(kBob))).has_value());
}

TEST_F(Modes, AnotherLimitIsRefusedWithBothNumbers) {
  rig_.Take(1, Permit(3, kAlice));
  const uint64_t request = rig_.Ask(2, Permit(5, kBob, kLong));
  const auto status = rig_.Answer<absl::Status>(2, request);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(ReasonOf(*status), Reason::kLimitMismatch);
  EXPECT_EQ(FieldOf(*status), "limit");
  const std::string message(status->message());
  EXPECT_NE(message.find('3'), std::string::npos);
  EXPECT_NE(message.find('5'), std::string::npos);
}

TEST_F(Modes, AMixOfModesByOneOwnerIsRefused) {
  rig_.Open(1);
  rig_.Take(1, Permit(3, kAlice));
  EXPECT_EQ(rig_.Refused(1, rig_.Ask(1, Read(kAlice, kLong))), Reason::kModeMismatch);
  EXPECT_EQ(rig_.Refused(1, rig_.Ask(1, Write(kAlice, kLong))), Reason::kModeMismatch);
}

TEST_F(Modes, ALimitGoesWithAPermitOnly) {
  for (const Acquire& wrong : {Permit(0), Permit(limits::kMaxPermitLimit + 1)}) {
    const auto status = rig_.Answer<absl::Status>(1, rig_.Ask(1, wrong));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(ReasonOf(*status), Reason::kInvalidField);
    EXPECT_EQ(FieldOf(*status), "limit");
  }
  Acquire read = Read();
  read.limit = 2;
  EXPECT_EQ(rig_.Refused(1, rig_.Ask(1, read)), Reason::kInvalidField);
}

TEST_F(Modes, EveryReaderHearsThatSomebodyWaits) {
  rig_.Open(1);
  rig_.Open(2);
  rig_.Take(1, Read(kAlice));
  rig_.Take(2, Read(kBob));
  rig_.Ask(3, Write("", kLong));
  EXPECT_EQ(rig_.Count<Contended>(1), 1);
  EXPECT_EQ(rig_.Count<Contended>(2), 1);
}

}  // namespace
}  // namespace holdfast::engine
