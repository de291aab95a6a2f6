// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_codes.h"
#include "client/cli/mode.h"
#include "client/lib/convert.h"
#include "src/base/durations.h"
#include "src/base/status.h"

namespace holdfast::cli {
namespace {

using client::FromMessage;
using nlohmann::json;

int64_t Millis(const google::protobuf::Duration& duration) {
  return absl::ToInt64Milliseconds(FromMessage(duration));
}

std::string ReasonOf(const v1::AcquireResponse& answer) {
  const std::string name = v1::NotAcquiredReason_Name(answer.reason());
  const absl::string_view prefix = "NOT_ACQUIRED_REASON_";
  return name.substr(std::min(prefix.size(), name.size()));
}

json CycleOf(const v1::AcquireResponse& answer) {
  json cycle = json::array();
  for (const v1::CycleStep& step : answer.cycle()) {
    cycle.push_back({{"namespace", step.namespace_()},
                     {"key", step.key()},
                     {"owner_fingerprint", step.owner_fingerprint()},
                     {"note", step.note()}});
  }
  return cycle;
}

// "a would never be free: 1a2b (job 7) waits for a, held by 3c4d, which waits for b, held by 1a2b".
std::string DescribeCycle(const std::string& key, const v1::AcquireResponse& answer) {
  const int steps = answer.cycle_size();
  std::string text = absl::StrCat(key, " would never be free, because these wait for each other: ");
  for (int i = 0; i < steps; ++i) {
    const v1::CycleStep& step = answer.cycle(i);
    absl::StrAppend(&text, i == 0 ? step.owner_fingerprint() : ", which",
                    step.note().empty() ? "" : absl::StrCat(" (", step.note(), ")"), " waits for ",
                    step.key(), ", held by ", answer.cycle((i + 1) % steps).owner_fingerprint());
  }
  return absl::StrCat(text,
                      ". Give back what you hold and try again, and take keys in the same "
                      "order everywhere");
}

// Bytes of a note that are no UTF-8 must not end the program.
std::string Line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

void Report::Answer(const json& object, absl::string_view text) const {
  std::cout << (global_.json ? Line(object) : std::string(text)) << std::flush;
}

void Report::Note(absl::string_view event, absl::string_view message) const {
  if (global_.json) {
    std::cerr << Line({{"event", std::string(event)}, {"message", std::string(message)}});
  } else {
    std::cerr << "holdfast: " << message << "\n";
  }
}

int Report::Failure(const absl::Status& status) const {
  const std::string text = Explain(status, global_.address);
  if (!global_.json) {
    std::cerr << "holdfast: " << text << "\n";
    return ExitCodeOf(status);
  }
  json error = {{"code", absl::StatusCodeToString(status.code())},
                {"reason", std::string(ReasonName(holdfast::ReasonOf(status)))},
                {"message", text}};
  if (const std::string field = FieldOf(status); !field.empty()) error["field"] = field;
  if (const auto retry = RetryAfterOf(status)) {
    error["retry_after_ms"] = absl::ToInt64Milliseconds(*retry);
  }
  std::cerr << Line({{"error", error}});
  return ExitCodeOf(status);
}

void Report::Busy(const std::string& key, const v1::AcquireResponse& answer) const {
  json object = {{"acquired", false},
                 {"key", key},
                 {"reason", ReasonOf(answer)},
                 {"queue_length", answer.queue_length()},
                 {"holders", json::array()}};
  std::string text = absl::StrCat(key, " is busy");
  if (answer.reason() == v1::NOT_ACQUIRED_REASON_WAIT_EXPIRED) {
    text = absl::StrCat("waited in vain for ", key);
  }
  for (const v1::Holder& holder : answer.holders()) {
    object["holders"].push_back(ToJson(holder));
    absl::StrAppend(&text, ": ", Describe(holder));
  }
  if (answer.reason() == v1::NOT_ACQUIRED_REASON_DEADLOCK) {
    object["cycle"] = CycleOf(answer);
    text = DescribeCycle(key, answer);
  } else if (answer.holders().empty()) {
    absl::StrAppend(&text, ": nobody holds it, but it is kept back for a while (--at-least)");
  }
  if (answer.queue_length() > 0) {
    absl::StrAppend(&text, "; ", answer.queue_length(), " in line");
  }
  if (global_.json) {
    std::cout << Line(object) << std::flush;
  } else {
    std::cerr << "holdfast: " << text << "\n";
  }
}

std::string Explain(const absl::Status& status, const std::string& address) {
  std::string words(status.message());
  const auto retry = RetryAfterOf(status);
  const std::string later =
      retry.has_value() ? absl::StrCat(" Try again in ", DurationText(*retry), ".") : "";
  switch (holdfast::ReasonOf(status)) {
    case Reason::kUnspecified:
      if (!client::IsUnreachable(status)) return words;
      // gRPC says the same several times over; the cause comes last.
      if (const size_t cause = words.rfind(": "); cause != std::string::npos) {
        words.erase(0, cause + 2);
      }
      return absl::StrCat("cannot reach a daemon at ", address, " (", words,
                          "). Is holdfastd running? Start it with `holdfastd`, or name another "
                          "address with --address or HOLDFAST_ADDRESS.");
    case Reason::kStoreUnreachable:
      return absl::StrCat("the daemon at ", address, " cannot reach its store: ", words,
                          ". Nothing was granted; its log says more.", later);
    case Reason::kGracePeriod:
      return absl::StrCat("the daemon at ", address, " grants no locks yet: ", words, ".", later);
    case Reason::kDraining:
      return absl::StrCat("the daemon at ", address, " is shutting down: ", words, ".", later);
    case Reason::kNotOwner:
    case Reason::kLeaseExpired:
      return absl::StrCat("the lock is not held any more: ", words);
    case Reason::kSessionNotFound:
      return absl::StrCat(words, ". `holdfast sessions` lists those of the daemon at ", address,
                          ".");
    default:
      return absl::StrCat(words, later.empty() ? "" : ".", later);
  }
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  switch (holdfast::ReasonOf(status)) {
    case Reason::kInvalidField:
    case Reason::kUnsupported:
    case Reason::kUpgradeRefused:
    case Reason::kLimitMismatch:
    case Reason::kModeMismatch:
      return kExitUsage;
    case Reason::kNotOwner:
    case Reason::kLeaseExpired:
    case Reason::kSessionNotFound:
    case Reason::kSessionExpired:
    case Reason::kSessionClosed:
      return kExitLost;
    default:
      return kExitUnavailable;
  }
}

json ToJson(const v1::Holder& holder) {
  json object = {{"owner_fingerprint", holder.owner_fingerprint()},
                 {"hold_id", holder.hold_id()},
                 {"mode", ModeName(holder.mode())},
                 {"note", holder.note()},
                 {"hold_count", holder.hold_count()},
                 {"fencing_token", holder.fencing_token()},
                 {"has_session", holder.has_session()},
                 {"foreign", holder.foreign()}};
  if (holder.has_held_for()) object["held_for_ms"] = Millis(holder.held_for());
  if (holder.has_expires_in()) object["expires_in_ms"] = Millis(holder.expires_in());
  return object;
}

json ToJson(const v1::WaiterInLine& waiter) {
  json object = {{"daemon", waiter.daemon()},
                 {"ordering", waiter.ordering() == v1::ORDERING_FIFO ? "FIFO" : "BARGING"}};
  if (!waiter.daemon().empty()) return object;
  object["owner_fingerprint"] = waiter.owner_fingerprint();
  object["note"] = waiter.note();
  object["mode"] = ModeName(waiter.mode());
  object["waiting_for_ms"] = Millis(waiter.waiting_for());
  object["gives_up_in_ms"] = Millis(waiter.gives_up_in());
  return object;
}

json ToJson(const v1::KeyState& state) {
  json object = {{"key", state.key()},
                 {"free", state.free()},
                 {"fencing_token", state.fencing_token()},
                 {"queue_length", state.queue_length()},
                 {"holder_count", state.holder_count()},
                 {"holders", json::array()}};
  if (!state.free()) object["mode"] = ModeName(state.mode());
  if (state.limit() > 0) object["limit"] = state.limit();
  for (const v1::Holder& holder : state.holders()) object["holders"].push_back(ToJson(holder));
  object["waiters"] = json::array();
  for (const v1::WaiterInLine& waiter : state.waiters())
    object["waiters"].push_back(ToJson(waiter));
  if (state.has_kept_for()) object["kept_for_ms"] = Millis(state.kept_for());
  return object;
}

json ToJson(const v1::Grant& grant) {
  json object = {{"namespace", grant.namespace_()},  {"key", grant.key()},
                 {"owner", grant.owner()},           {"hold_id", grant.hold_id()},
                 {"mode", ModeName(grant.mode())},   {"fencing_token", grant.fencing_token()},
                 {"hold_count", grant.hold_count()}, {"lease_ms", Millis(grant.lease())}};
  if (grant.has_max_hold_remaining()) {
    object["max_hold_remaining_ms"] = Millis(grant.max_hold_remaining());
  }
  return object;
}

std::string Describe(const v1::WaiterInLine& waiter) {
  const std::string fifo = waiter.ordering() == v1::ORDERING_FIFO ? ", FIFO" : "";
  if (!waiter.daemon().empty()) {
    return absl::StrCat("waits at another daemon, ", waiter.daemon(), fifo);
  }
  std::string text = absl::StrCat(waiter.owner_fingerprint(), " waits");
  if (!waiter.note().empty()) absl::StrAppend(&text, " (", waiter.note(), ")");
  const std::string mode = ModeWord(waiter.mode());
  absl::StrAppend(&text, " for ", DurationText(FromMessage(waiter.waiting_for())), ", gives up in ",
                  DurationText(FromMessage(waiter.gives_up_in())),
                  mode.empty() ? "" : absl::StrCat(", ", mode), fifo);
  return text;
}

std::string Describe(const v1::Holder& holder) {
  std::string text = absl::StrCat("held by ", holder.owner_fingerprint());
  if (!holder.note().empty()) absl::StrAppend(&text, " (", holder.note(), ")");
  if (holder.foreign()) absl::StrAppend(&text, " (a program without Holdfast)");
  if (holder.has_held_for()) {
    absl::StrAppend(&text, " for ", DurationText(FromMessage(holder.held_for())));
  }
  absl::StrAppend(&text, ", expires ",
                  holder.has_expires_in()
                      ? absl::StrCat("in ", DurationText(FromMessage(holder.expires_in())))
                      : "never");
  if (holder.has_session()) absl::StrAppend(&text, " unless its session renews it");
  return text;
}

}  // namespace holdfast::cli
