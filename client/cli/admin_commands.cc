// SPDX-License-Identifier: Apache-2.0
//
// check-token, and what an operator does: sessions, close-session, force-release.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/quote.h"
#include "client/cli/report.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"
#include "client/lib/endpoint.h"
#include "src/base/durations.h"

namespace holdfast::cli {
namespace {

using client::FromMessage;
using nlohmann::json;

int64_t Millis(const google::protobuf::Duration& duration) {
  return absl::ToInt64Milliseconds(FromMessage(duration));
}

std::string Text(const google::protobuf::Duration& duration) {
  return DurationText(absl::Ceil(FromMessage(duration), absl::Milliseconds(1)));
}

std::string Times(uint32_t n, absl::string_view one) {
  return absl::StrCat(n, " ", one, n == 1 ? "" : "s");
}

json ToJson(const v1::SessionInfo& session) {
  return {{"session_id", session.session_id()},
          {"client_name", session.client_name()},
          {"principal", session.principal()},
          {"peer", session.peer()},
          {"age_ms", Millis(session.age())},
          {"since_last_ping_ms", Millis(session.since_last_ping())},
          {"ttl_ms", Millis(session.ttl())},
          {"holds", session.holds()},
          {"waiting", session.waiting()},
          {"connected", session.connected()},
          {"closing", session.closing()}};
}

std::string TextOf(const v1::SessionInfo& session) {
  std::string text =
      absl::StrCat(session.session_id(), "  ", session.client_name(), " from ", session.peer(),
                   ", for ", Text(session.age()), ", ", Times(session.holds(), "hold"), ", ",
                   session.waiting(), " waiting");
  if (!session.connected()) {
    absl::StrAppend(&text, ", silent for ", Text(session.since_last_ping()), " of ",
                    Text(session.ttl()));
  }
  if (session.closing()) absl::StrAppend(&text, ", being closed");
  return absl::StrCat(text, "\n");
}

// What became of the holders, and what to do next.
std::string TextOf(const std::string& key, const v1::ForceReleaseResponse& answer) {
  std::string text;
  for (const v1::Holder& holder : answer.holders()) {
    absl::StrAppend(&text, "  ", Describe(holder), "\n");
  }
  if (answer.overlap_possible()) {
    return absl::StrCat(key, " was taken away from:\n", text,
                        "Its holder may still be working: resources that check fencing tokens "
                        "refuse it once the next holder has written.\n");
  }
  if (answer.ended() == 0 && !text.empty()) {
    return absl::StrCat(key, " is not Holdfast's to take away gently:\n", text,
                        "Stop that program, or free the key at once with --immediate; it may "
                        "still be working then.\n");
  }
  if (answer.ended() == 0) return absl::StrCat(key, " has no such holder: nothing to do\n");
  absl::StrAppend(&text, "It is free as soon as its holder has stopped");
  if (answer.has_free_within()) {
    absl::StrAppend(&text, ", and after ", Text(answer.free_within()), " at the latest");
  }
  return absl::StrCat(key, " is being taken away from:\n", text, ".\n");
}

}  // namespace

int Execute(const GlobalOptions& global, const CheckTokenOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::CheckTokenRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  request.set_fencing_token(options.token);
  const auto answer = client::Client(*channel).CheckToken(request);
  if (!answer.ok()) return report.Failure(answer.status());
  std::string text = absl::StrCat(options.key, "  token ", options.token, " is the current one\n");
  if (!answer->current()) {
    text = answer->current_token() == 0
               ? absl::StrCat(options.key, "  nobody holds it, token ", options.token, " is over\n")
               : absl::StrCat(options.key, "  token ", options.token,
                              " is not the current one, which is ", answer->current_token(), "\n");
  }
  report.Answer({{"key", options.key},
                 {"current", answer->current()},
                 {"current_token", answer->current_token()}},
                text);
  return answer->current() ? kExitOk : kExitLost;
}

int Execute(const GlobalOptions& global, const SessionsOptions& /*options*/) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  const absl::Status status = client::Client(*channel).ListSessions(
      [&](const v1::SessionInfo& session) { report.Answer(ToJson(session), TextOf(session)); });
  return status.ok() ? kExitOk : report.Failure(status);
}

int Execute(const GlobalOptions& global, const CloseSessionOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::CloseSessionRequest request;
  request.set_session_id(options.session_id);
  const auto answer = client::Client(*channel).CloseSession(request);
  if (!answer.ok()) return report.Failure(answer.status());
  std::string text = absl::StrCat("closed ", options.session_id);
  if (answer->ended() > 0) {
    absl::StrAppend(&text, "; its ", Times(answer->ended(), "hold"),
                    answer->ended() == 1 ? " is" : " are",
                    " free as soon as it has stopped, and after ", Text(answer->free_within()),
                    " at the latest");
  }
  report.Answer({{"closed", true},
                 {"session_id", options.session_id},
                 {"ended", answer->ended()},
                 {"free_within_ms", Millis(answer->free_within())}},
                absl::StrCat(text, "\n"));
  return kExitOk;
}

int Execute(const GlobalOptions& global, const ForceReleaseOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::ForceReleaseRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  request.set_hold_id(options.hold_id);
  request.set_immediate(options.immediate);
  request.set_note(options.note);
  const auto answer = client::Client(*channel).ForceRelease(request);
  if (!answer.ok()) return report.Failure(answer.status());
  json object = {{"key", options.key},
                 {"ended", answer->ended()},
                 {"overlap_possible", answer->overlap_possible()},
                 {"holders", json::array()}};
  if (answer->has_free_within()) object["free_within_ms"] = Millis(answer->free_within());
  for (const v1::Holder& holder : answer->holders()) object["holders"].push_back(ToJson(holder));
  report.Answer(object, TextOf(options.key, *answer));
  return answer->ended() == 0 && answer->holders_size() > 0 ? kExitConflict : kExitOk;
}

}  // namespace holdfast::cli
