// SPDX-License-Identifier: Apache-2.0
#include "server/front/convert.h"

#include "absl/strings/str_cat.h"
#include "src/base/limits.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

// The numbers of the engine's enums are those of the contract.
static_assert(int{v1::MODE_EXCLUSIVE} == static_cast<int>(Mode::kExclusive));
static_assert(int{v1::MODE_SHARED} == static_cast<int>(Mode::kShared));
static_assert(int{v1::MODE_PERMIT} == static_cast<int>(Mode::kPermit));

constexpr int64_t kMaxSeconds = 315'576'000'000;
constexpr int32_t kMaxNanos = 999'999'999;

absl::Status UnknownEnum(absl::string_view field, int value) {
  return Fail(Reason::kInvalidField, field,
              absl::StrCat(field, " has the unknown value ", value, "; use one of the contract's"));
}

KeyName NameOf(std::string* ns, std::string* key, const std::string& default_ns) {
  return KeyName{ns->empty() ? default_ns : std::move(*ns), std::move(*key)};
}

absl::StatusOr<Mode> FromMessage(v1::Mode mode) {
  if (mode == v1::MODE_UNSPECIFIED) return Mode::kExclusive;
  if (!v1::Mode_IsValid(mode)) return UnknownEnum("mode", mode);
  return static_cast<Mode>(mode);
}

absl::StatusOr<engine::Reentry> FromMessage(v1::Reentry reentry) {
  switch (reentry) {
    case v1::REENTRY_UNSPECIFIED:
    case v1::REENTRY_ALLOW:
      return engine::Reentry::kAllow;
    case v1::REENTRY_REFUSE:
      return engine::Reentry::kRefuse;
    default:
      return UnknownEnum("reentry", reentry);
  }
}

absl::StatusOr<engine::Ordering> FromMessage(v1::Ordering ordering) {
  switch (ordering) {
    case v1::ORDERING_UNSPECIFIED:
      return engine::Ordering::kDefault;
    case v1::ORDERING_FIFO:
      return engine::Ordering::kFifo;
    case v1::ORDERING_BARGING:
      return engine::Ordering::kBarging;
    default:
      return UnknownEnum("ordering", ordering);
  }
}

// Reads the duration fields of one request; the first bad one is kept.
class DurationReader {
 public:
  std::optional<absl::Duration> Optional(bool is_set, const google::protobuf::Duration& duration,
                                         absl::string_view field) {
    auto read = server::FromMessage(is_set, duration, field);
    if (read.ok()) return *read;
    if (status_.ok()) status_ = read.status();
    return std::nullopt;
  }
  absl::Duration OrZero(bool is_set, const google::protobuf::Duration& duration,
                        absl::string_view field) {
    return Optional(is_set, duration, field).value_or(absl::ZeroDuration());
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::optional<absl::Duration>> FromMessage(
    bool is_set, const google::protobuf::Duration& duration, absl::string_view field) {
  if (!is_set) return std::optional<absl::Duration>();
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  const auto invalid = [&](absl::string_view rule) {
    return Fail(Reason::kInvalidField, field, absl::StrCat(field, " ", rule));
  };
  if (nanos > kMaxNanos || nanos < -kMaxNanos) {
    return invalid("must have nanos from -999,999,999 to 999,999,999");
  }
  if ((seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
    return invalid("must have seconds and nanos of the same sign");
  }
  if (seconds < 0 || nanos < 0) return invalid("must not be negative");
  if (seconds > kMaxSeconds) return invalid("must be at most 315,576,000,000 s");
  return std::optional<absl::Duration>(absl::Seconds(seconds) + absl::Nanoseconds(nanos));
}

void ToMessage(absl::Duration duration, google::protobuf::Duration& to) {
  absl::Duration rest;
  to.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

absl::StatusOr<engine::OpenSession> ToOpenSession(v1::SessionOpen&& open,
                                                  engine::CommandHead head) {
  DurationReader durations;
  engine::OpenSession command{
      .head = std::move(head),
      .client_name = std::move(*open.mutable_client_name()),
      .peer = {},
      .ttl = durations.Optional(open.has_ttl(), open.ttl(), "ttl"),
      .lease = durations.Optional(open.has_lease(), open.lease(), "lease"),
      .reconnect_grace =
          durations.OrZero(open.has_reconnect_grace(), open.reconnect_grace(), "reconnect_grace"),
      .resume = open.has_resume(),
  };
  if (!durations.status().ok()) return durations.status();
  return command;
}

absl::StatusOr<engine::Acquire> ToAcquire(v1::AcquireRequest&& request, engine::CommandHead head,
                                          const std::string& ns) {
  const absl::StatusOr<Mode> mode = FromMessage(request.mode());
  if (!mode.ok()) return mode.status();
  const absl::StatusOr<engine::Reentry> reentry = FromMessage(request.reentry());
  if (!reentry.ok()) return reentry.status();
  const absl::StatusOr<engine::Ordering> ordering = FromMessage(request.ordering());
  if (!ordering.ok()) return ordering.status();
  DurationReader durations;
  engine::Acquire command{
      .head = std::move(head),
      .name = NameOf(request.mutable_namespace_(), request.mutable_key(), ns),
      .owner = std::move(*request.mutable_owner()),
      .session_id = std::move(*request.mutable_session_id()),
      .mode = *mode,
      .limit = request.limit(),
      .reentry = *reentry,
      .lease = durations.Optional(request.has_lease(), request.lease(), "lease"),
      .wait = durations.OrZero(request.has_wait(), request.wait(), "wait"),
      .max_hold = durations.Optional(request.has_max_hold(), request.max_hold(), "max_hold"),
      .min_hold = durations.OrZero(request.has_min_hold(), request.min_hold(), "min_hold"),
      .feed = durations.OrZero(request.has_feed(), request.feed(), "feed"),
      .ordering = *ordering,
      .note = std::move(*request.mutable_note()),
      .traceparent = std::move(*request.mutable_traceparent()),
      .command_id = std::move(*request.mutable_command_id()),
  };
  if (!durations.status().ok()) return durations.status();
  return command;
}

absl::StatusOr<engine::AcquireAll> ToAcquireAll(v1::AcquireAllRequest&& request,
                                                engine::CommandHead head, const std::string& ns) {
  const absl::StatusOr<engine::Reentry> reentry = FromMessage(request.reentry());
  if (!reentry.ok()) return reentry.status();
  const absl::StatusOr<engine::Ordering> ordering = FromMessage(request.ordering());
  if (!ordering.ok()) return ordering.status();
  DurationReader durations;
  std::string& given_ns = *request.mutable_namespace_();
  engine::AcquireAll command{
      .head = std::move(head),
      .ns = given_ns.empty() ? ns : std::move(given_ns),
      .keys = {},
      .owner = std::move(*request.mutable_owner()),
      .session_id = std::move(*request.mutable_session_id()),
      .reentry = *reentry,
      .lease = durations.Optional(request.has_lease(), request.lease(), "lease"),
      .wait = durations.OrZero(request.has_wait(), request.wait(), "wait"),
      .max_hold = durations.Optional(request.has_max_hold(), request.max_hold(), "max_hold"),
      .min_hold = durations.OrZero(request.has_min_hold(), request.min_hold(), "min_hold"),
      .feed = durations.OrZero(request.has_feed(), request.feed(), "feed"),
      .ordering = *ordering,
      .note = std::move(*request.mutable_note()),
      .traceparent = std::move(*request.mutable_traceparent()),
      .command_id = std::move(*request.mutable_command_id()),
  };
  if (!durations.status().ok()) return durations.status();
  for (v1::KeyAndMode& key : *request.mutable_keys()) {
    const absl::StatusOr<Mode> mode = FromMessage(key.mode());
    if (!mode.ok()) return mode.status();
    command.keys.push_back(engine::KeyAndMode{std::move(*key.mutable_key()), *mode, key.limit()});
  }
  return command;
}

absl::StatusOr<engine::Renew> ToRenew(v1::RenewRequest&& request, engine::CommandHead head,
                                      const std::string& ns) {
  DurationReader durations;
  engine::Renew command{
      .head = std::move(head),
      .name = NameOf(request.mutable_namespace_(), request.mutable_key(), ns),
      .owner = std::move(*request.mutable_owner()),
      .hold_id = std::move(*request.mutable_hold_id()),
      .lease = durations.Optional(request.has_lease(), request.lease(), "lease"),
      .command_id = std::move(*request.mutable_command_id()),
  };
  if (!durations.status().ok()) return durations.status();
  return command;
}

engine::Release ToRelease(v1::ReleaseRequest&& request, engine::CommandHead head,
                          const std::string& ns) {
  return engine::Release{
      .head = std::move(head),
      .name = NameOf(request.mutable_namespace_(), request.mutable_key(), ns),
      .owner = std::move(*request.mutable_owner()),
      .hold_id = std::move(*request.mutable_hold_id()),
      .command_id = std::move(*request.mutable_command_id()),
  };
}

absl::StatusOr<engine::ForceRelease> ToForceRelease(v1::ForceReleaseRequest&& request,
                                                    engine::CommandHead head,
                                                    const std::string& ns) {
  absl::Status note = CheckText(request.note(), "note", limits::kMaxNoteBytes);
  if (!note.ok()) return note;
  return engine::ForceRelease{
      .head = std::move(head),
      .name = NameOf(request.mutable_namespace_(), request.mutable_key(), ns),
      .hold_id = std::move(*request.mutable_hold_id()),
      .immediate = request.immediate(),
      .note = std::move(*request.mutable_note()),
  };
}

}  // namespace holdfast::server
