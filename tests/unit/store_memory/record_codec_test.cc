// SPDX-License-Identifier: Apache-2.0
//
// Records as they are written down, this version's and the one before.
#include "src/store/memory/record_codec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast::memory {
namespace {

using nlohmann::json;

std::string Cbor(const json& object) {
  std::string bytes;
  json::to_cbor(object, bytes);
  return bytes;
}

json ExclusiveOfFormat1() {
  return {{"v", 1},
          {"ns", "default"},
          {"key", "k"},
          {"token", 7},
          {"kept", 0},
          {"holds",
           {{{"owner", "alice"},
             {"id", "h1"},
             {"session", "s"},
             {"epoch", 1},
             {"mode", 1},
             {"count", 2},
             {"granted", 1},
             {"deadline", 5},
             {"max", 9},
             {"min", 0},
             {"note", "n"},
             {"ops", {"a"}}}}}};
}

TEST(RecordCodec, EveryFieldComesBack) {
  KeyRecord record;
  record.mode = Mode::kPermit;
  record.limit = 3;
  record.token = 11;
  record.kept_until = BootTime::FromNanos(5);
  record.kept_permits = {BootTime::FromNanos(6), BootTime::FromNanos(7)};
  HoldRecord hold;
  hold.owner = "alice";
  hold.hold_id = "h1";
  hold.session = "s";
  hold.epoch = 4;
  hold.count = 2;
  hold.number = 13;
  hold.granted_at = BootTime::FromNanos(1);
  hold.deadline = BootTime::FromNanos(2);
  hold.min_until = BootTime::FromNanos(3);
  hold.release_delay = absl::Seconds(4);
  hold.note = "note";
  hold.ops = {"a", "b"};
  record.holds = {hold};
  const auto named = DecodeRecord(EncodeRecord({"ns", "k"}, record));
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, (KeyName{"ns", "k"}));
  EXPECT_EQ(named->record, record);
}

TEST(RecordCodec, AnEarlierDaemonsRecordIsAnExclusiveLock) {
  const auto named = DecodeRecord(Cbor(ExclusiveOfFormat1()));
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->record.mode, Mode::kExclusive);
  EXPECT_EQ(named->record.token, 7);
  ASSERT_EQ(named->record.holds.size(), 1u);
  EXPECT_EQ(named->record.holds[0].count, 2u);
}

TEST(RecordCodec, WhatIsNoRecordIsNotTrusted) {
  EXPECT_FALSE(DecodeRecord("").has_value());
  json later = ExclusiveOfFormat1();
  later["v"] = 3;
  EXPECT_FALSE(DecodeRecord(Cbor(later)).has_value());
  json without = ExclusiveOfFormat1();
  without["v"] = 2;
  EXPECT_FALSE(DecodeRecord(Cbor(without)).has_value()) << "this format has modes";
}

}  // namespace
}  // namespace holdfast::memory
