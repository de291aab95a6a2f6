// SPDX-License-Identifier: Apache-2.0
#include "server/front/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/limits.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

constexpr char kNs[] = "default";
constexpr char kOwner[] = "an-owner-of-32-bytes-is-a-secret";

google::protobuf::Duration Span(int64_t seconds, int32_t nanos = 0) {
  google::protobuf::Duration duration;
  duration.set_seconds(seconds);
  duration.set_nanos(nanos);
  return duration;
}

absl::StatusOr<engine::Acquire> Convert(v1::AcquireRequest request) {
  return ToAcquire(std::move(request), engine::CommandHead(), kNs);
}

TEST(Durations, AreReadToTheNanosecond) {
  const auto read = FromMessage(true, Span(3, 5), "lease");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, absl::Seconds(3) + absl::Nanoseconds(5));
  EXPECT_EQ(*FromMessage(true, Span(0), "lease"), absl::ZeroDuration());
  EXPECT_EQ(*FromMessage(false, Span(0), "lease"), std::nullopt);
}

TEST(Durations, ThatAreMalformedNameTheirField) {
  for (const auto& bad :
       {Span(-1), Span(0, -1), Span(1, -1), Span(-1, 1), Span(0, 1'000'000'000), Span(0, INT32_MIN),
        Span(315'576'000'001), Span(INT64_MAX), Span(INT64_MIN)}) {
    const auto read = FromMessage(true, bad, "wait");
    EXPECT_EQ(ReasonOf(read.status()), Reason::kInvalidField) << bad.ShortDebugString();
    EXPECT_EQ(FieldOf(read.status()), "wait");
    EXPECT_THAT(std::string(read.status().message()), testing::StartsWith("wait must "));
  }
  EXPECT_TRUE(FromMessage(true, Span(315'576'000'000, 999'999'999), "wait").ok());
}

TEST(Durations, SurviveTheWayThere) {
  for (const absl::Duration d : {absl::ZeroDuration(), absl::Nanoseconds(1),
                                 absl::Milliseconds(1500), absl::Hours(24 * 365)}) {
    google::protobuf::Duration message;
    ToMessage(d, message);
    EXPECT_EQ(*FromMessage(true, message, "x"), d);
  }
}

TEST(ToAcquire, UnsetFieldsStayUnset) {
  const auto command = Convert({});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->name.ns, kNs);
  EXPECT_EQ(command->mode, Mode::kExclusive);
  EXPECT_EQ(command->reentry, engine::Reentry::kAllow);
  EXPECT_EQ(command->ordering, engine::Ordering::kDefault);
  EXPECT_EQ(command->lease, std::nullopt);
  EXPECT_EQ(command->max_hold, std::nullopt);
  EXPECT_EQ(command->wait, absl::ZeroDuration());
}

TEST(ToAcquire, ExplicitZerosAreNotUnset) {
  v1::AcquireRequest request;
  *request.mutable_lease() = Span(0);
  *request.mutable_max_hold() = Span(0);
  const auto command = Convert(request);
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->lease, absl::ZeroDuration());
  EXPECT_EQ(command->max_hold, absl::ZeroDuration());
}

TEST(ToAcquire, UnknownEnumNumbersNameTheirField) {
  v1::AcquireRequest request;
  request.set_mode(static_cast<v1::Mode>(99));
  EXPECT_EQ(FieldOf(Convert(request).status()), "mode");
  request.Clear();
  request.set_reentry(static_cast<v1::Reentry>(3));
  EXPECT_EQ(FieldOf(Convert(request).status()), "reentry");
  request.Clear();
  request.set_ordering(static_cast<v1::Ordering>(-1));
  EXPECT_EQ(FieldOf(Convert(request).status()), "ordering");
}

TEST(ToAcquire, EachBadDurationNamesItsField) {
  using Field = google::protobuf::Duration* (v1::AcquireRequest::*)();
  const std::pair<Field, const char*> fields[] = {
      {&v1::AcquireRequest::mutable_lease, "lease"},
      {&v1::AcquireRequest::mutable_wait, "wait"},
      {&v1::AcquireRequest::mutable_max_hold, "max_hold"},
      {&v1::AcquireRequest::mutable_min_hold, "min_hold"},
      {&v1::AcquireRequest::mutable_feed, "feed"}};
  for (const auto& [field, name] : fields) {
    v1::AcquireRequest request;
    *(request.*field)() = Span(-1);
    EXPECT_EQ(FieldOf(Convert(request).status()), name);
  }
}

TEST(ToAcquireAll, EachKeyHasAModeOfItsOwn) {
  v1::AcquireAllRequest request;
  request.add_keys()->set_key("a");
  v1::KeyAndMode& permit = *request.add_keys();
  permit.set_key("b");
  permit.set_mode(v1::MODE_PERMIT);
  permit.set_limit(3);
  *request.mutable_wait() = Span(2);
  const auto command = ToAcquireAll(v1::AcquireAllRequest(request), {}, "shop");
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->ns, "shop");
  EXPECT_EQ(command->wait, absl::Seconds(2));
  ASSERT_EQ(command->keys.size(), 2u);
  EXPECT_EQ(command->keys[0].mode, Mode::kExclusive);
  EXPECT_EQ(command->keys[1].mode, Mode::kPermit);
  EXPECT_EQ(command->keys[1].limit, 3u);
  permit.set_mode(static_cast<v1::Mode>(77));
  const auto bad = ToAcquireAll(std::move(request), {}, "shop");
  EXPECT_EQ(FieldOf(bad.status()), "mode");
}

TEST(Answers, OfASetNameTheBusyKey) {
  engine::NoneGranted none{{"shop", "b"}, {engine::NotAcquiredReason::kBusy, {}, 4, {}}};
  none.why.holders.resize(1);
  none.why.holders[0].owner = kOwner;
  v1::AcquireAllResponse message;
  ToMessage(none, message);
  EXPECT_EQ(message.outcome(), v1::OUTCOME_NOT_ACQUIRED);
  EXPECT_EQ(message.busy_key(), "b");
  EXPECT_EQ(message.queue_length(), 4u);
  EXPECT_NE(message.holders(0).owner_fingerprint(), kOwner);
}

TEST(Answers, TheOwnerGoesToItsHolderOnly) {
  engine::Grant grant;
  grant.owner = kOwner;
  grant.lease = absl::Seconds(30);
  v1::AcquireResponse granted;
  ToMessage(grant, granted);
  EXPECT_EQ(granted.grant().owner(), kOwner);
  EXPECT_EQ(granted.grant().safety_margin().nanos(), 610'000'000);
  EXPECT_FALSE(granted.grant().has_max_hold_remaining());

  engine::NotAcquired busy;
  busy.holders.resize(1);
  busy.holders[0].owner = kOwner;
  busy.holders[0].held_for = absl::InfiniteDuration();
  busy.holders[0].expires_in = absl::InfiniteDuration();
  v1::AcquireResponse refused;
  ToMessage(busy, refused);
  EXPECT_EQ(refused.outcome(), v1::OUTCOME_NOT_ACQUIRED);
  EXPECT_EQ(refused.holders(0).owner_fingerprint(), OwnerFingerprint(kOwner));
  EXPECT_FALSE(refused.holders(0).has_held_for());
  EXPECT_FALSE(refused.holders(0).has_expires_in());
  EXPECT_EQ(refused.SerializeAsString().find(kOwner), std::string::npos);
}

TEST(Answers, AKeyThatIsKeptBackIsNotFree) {
  engine::InspectAnswer answer;
  answer.report.kept_for = absl::Seconds(2);
  v1::KeyState state;
  ToMessage(answer, state);
  EXPECT_FALSE(state.free());
  EXPECT_EQ(state.kept_for().seconds(), 2);
  EXPECT_EQ(state.holders_size(), 0);
}

TEST(Answers, ErrorsCarryWhatAProgramNeeds) {
  v1::Error error;
  ToMessage(FailRetryable(Reason::kGracePeriod, "wait", absl::Seconds(42)), error);
  EXPECT_EQ(error.code(), 14);
  EXPECT_EQ(error.reason(), v1::ERROR_REASON_GRACE_PERIOD);
  EXPECT_EQ(error.retry_after().seconds(), 42);
  error.Clear();
  ToMessage(Fail(Reason::kInvalidField, "key", "key must be set"), error);
  EXPECT_EQ(error.field(), "key");
  EXPECT_FALSE(error.has_retry_after());
}

TEST(Answers, ReplyNamesItsRequest) {
  v1::SessionEvent event;
  ToMessage(engine::Event{1, engine::Reply{42, engine::ReleaseAnswer{3}}}, event);
  EXPECT_EQ(event.reply().request_id(), 42u);
  EXPECT_EQ(event.reply().release().remaining_count(), 3u);
}

}  // namespace
}  // namespace holdfast::server
