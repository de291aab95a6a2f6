// SPDX-License-Identifier: Apache-2.0
//
// inspect, ls, ping: these change nothing.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/report.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"
#include "client/lib/endpoint.h"
#include "src/base/durations.h"
#include "src/base/status.h"

namespace holdfast::cli {
namespace {

using client::FromMessage;
using nlohmann::json;

// A key that nobody uses, to ask the store something.
constexpr char kProbeKey[] = "holdfast-ping";

std::string TextOf(const v1::KeyState& state) {
  std::string text = state.key();
  if (state.free()) return absl::StrCat(text, "  free\n");
  if (state.holders().empty()) {
    return absl::StrCat(text, "  released, kept back for another ",
                        DurationText(FromMessage(state.kept_for())), "\n");
  }
  if (state.mode() == v1::MODE_PERMIT) {
    absl::StrAppend(&text, "  permits of ", state.limit());
  } else {
    absl::StrAppend(&text, "  token ", state.fencing_token());
    if (state.mode() == v1::MODE_SHARED) absl::StrAppend(&text, ", shared");
  }
  if (state.holder_count() > 1) absl::StrAppend(&text, ", ", state.holder_count(), " holders");
  if (state.queue_length() > 0) absl::StrAppend(&text, ", ", state.queue_length(), " in line");
  absl::StrAppend(&text, "\n");
  for (const v1::Holder& holder : state.holders()) {
    absl::StrAppend(&text, "  ", Describe(holder), "\n");
  }
  if (const int64_t more = int64_t{state.holder_count()} - state.holders_size(); more > 0) {
    absl::StrAppend(&text, "  and ", more, " more\n");
  }
  for (const v1::WaiterInLine& waiter : state.waiters()) {
    absl::StrAppend(&text, "  ", Describe(waiter), "\n");
  }
  return text;
}

// What keeps a daemon that answers from serving; OK: nothing that a question can find out.
absl::Status WhyNotServing(client::Client& client) {
  v1::InspectRequest look;
  look.set_key(kProbeKey);
  const auto state = client.Inspect(look);
  if (!state.ok()) return state.status();
  // Only an attempt to take something tells how long a grace period lasts.
  v1::AcquireRequest take;
  take.set_key(kProbeKey);
  *take.mutable_lease() = client::ToMessage(absl::Milliseconds(100));
  const auto answer = client.Acquire(take);
  if (!answer.ok()) return answer.status();
  if (!answer->has_grant()) return absl::OkStatus();
  v1::ReleaseRequest release;
  release.set_key(kProbeKey);
  release.set_owner(answer->grant().owner());
  release.set_hold_id(answer->grant().hold_id());
  return client.Release(release).status();
}

}  // namespace

int Execute(const GlobalOptions& global, const InspectOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::InspectRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  const auto answer = client::Client(*channel).Inspect(request);
  if (!answer.ok()) return report.Failure(answer.status());
  report.Answer(ToJson(answer->state()), TextOf(answer->state()));
  return kExitOk;
}

int Execute(const GlobalOptions& global, const ListOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::ListRequest request;
  request.set_namespace_(global.ns);
  request.set_prefix(options.prefix);
  const absl::Status status = client::Client(*channel).List(
      request, [&](const v1::KeyState& state) { report.Answer(ToJson(state), TextOf(state)); });
  return status.ok() ? kExitOk : report.Failure(status);
}

int Execute(const GlobalOptions& global, const PingOptions& /*options*/) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  client::Client client(*channel);
  const MachineClock clock;
  // The first call connects; the second one is what a call takes.
  auto serving = client.IsServing();
  const BootTime start = clock.Now();
  if (serving.ok()) serving = client.IsServing();
  const absl::Duration round_trip = clock.Now() - start;
  if (!serving.ok()) return report.Failure(serving.status());

  absl::Status why;
  if (!*serving) {
    why = WhyNotServing(client);
    if (why.ok()) why = absl::UnavailableError("the daemon answers, but says that it cannot serve");
  }
  const std::string trouble = why.ok() ? "" : Explain(why, global.address);
  json object = {{"address", global.address},
                 {"round_trip_us", absl::ToInt64Microseconds(round_trip)},
                 {"serving", *serving},
                 {"reason", std::string(why.ok() ? "" : ReasonName(ReasonOf(why)))},
                 {"message", trouble}};
  if (const auto retry = RetryAfterOf(why)) {
    object["retry_after_ms"] = absl::ToInt64Milliseconds(*retry);
  }
  report.Answer(
      object,
      absl::StrCat(global.address, ": ", *serving ? "serving" : "not serving", ", round trip ",
                   absl::FormatDuration(absl::Trunc(round_trip, absl::Microseconds(1))), "\n",
                   trouble, trouble.empty() ? "" : "\n"));
  return *serving ? kExitOk : kExitUnavailable;
}

}  // namespace holdfast::cli
