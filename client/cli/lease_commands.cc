// SPDX-License-Identifier: Apache-2.0
//
// acquire, renew, release: bare leases, for scripts that renew and release themselves.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/quote.h"
#include "client/cli/report.h"
#include "client/cli/several.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"
#include "client/lib/endpoint.h"
#include "src/base/durations.h"

namespace holdfast::cli {
namespace {

using client::FromMessage;
using client::ToMessage;
using nlohmann::json;

// What remains of a lease that was granted for a request sent at `sent`.
absl::Duration Remaining(BootTime sent, const client::GrantTimes& times) {
  const absl::Duration left = client::HoldValidity(sent, times).until() - MachineClock().Now();
  return std::max(left, absl::ZeroDuration());
}

std::string CommandLineOf(const std::string& command, const GlobalOptions& global,
                          const v1::Grant& grant) {
  std::string line = absl::StrCat("holdfast ", command, " ", Quote(grant.key()));
  if (!global.ns.empty()) absl::StrAppend(&line, " --namespace=", Quote(global.ns));
  if (global.address != client::kDefaultAddress) {
    absl::StrAppend(&line, " --address=", Quote(global.address));
  }
  absl::StrAppend(&line, " --owner=", Quote(grant.owner()), " --hold-id=", Quote(grant.hold_id()));
  return line;
}

struct Described {
  json object;
  std::string text;
};

Described Describe(const GlobalOptions& global, const v1::Grant& grant, absl::Duration remaining) {
  json object = ToJson(grant);
  object["acquired"] = true;
  object["valid_for_ms"] = absl::ToInt64Milliseconds(remaining);
  const std::string mode = ModeWord(grant.mode());
  return {std::move(object),
          absl::StrCat("acquired ", grant.key(), mode.empty() ? "" : absl::StrCat(" (", mode, ")"),
                       ", valid for another ", DurationText(remaining), "\n",  //
                       "  token    ", grant.fencing_token(), "\n",             //
                       "  owner    ", grant.owner(), "\n",                     //
                       "  hold-id  ", grant.hold_id(), "\n",                   //
                       "make it last longer:\n  ",                             //
                       CommandLineOf("renew", global, grant), "\n",            //
                       "give it back:\n  ",                                    //
                       CommandLineOf("release", global, grant), "\n")};
}

// One of them as an object; several as a list.
void AnswerGrants(const Report& report, const GlobalOptions& global,
                  const std::vector<v1::Grant>& grants, BootTime sent) {
  json locks = json::array();
  std::string text;
  for (const v1::Grant& grant : grants) {
    Described one = Describe(global, grant, Remaining(sent, client::TimesOf(grant)));
    absl::StrAppend(&text, one.text);
    locks.push_back(std::move(one.object));
  }
  if (locks.size() == 1) return report.Answer(locks[0], text);
  report.Answer({{"acquired", true}, {"locks", std::move(locks)}}, text);
}

}  // namespace

int Execute(const GlobalOptions& global, const AcquireOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::AcquireRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  SetMode(options.mode, request);
  request.set_owner(options.owner);
  request.set_note(options.note);
  *request.mutable_wait() = ToMessage(options.wait);
  if (options.lease.has_value()) *request.mutable_lease() = ToMessage(*options.lease);
  *request.mutable_max_hold() = ToMessage(options.max_hold);
  const BootTime sent = MachineClock().Now();
  client::Client client(*channel);
  const auto taken = Take(client, request, options.mode, options.more_keys);
  if (!taken.ok()) return report.Failure(taken.status());
  if (taken->grants.empty()) {
    report.Busy(taken->busy_key, taken->refusal);
    return kExitConflict;
  }
  AnswerGrants(report, global, taken->grants, sent);
  return kExitOk;
}

int Execute(const GlobalOptions& global, const RenewOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::RenewRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  request.set_owner(options.owner);
  request.set_hold_id(options.hold_id);
  if (options.lease.has_value()) *request.mutable_lease() = ToMessage(*options.lease);
  const BootTime sent = MachineClock().Now();
  const auto answer = client::Client(*channel).Renew(request);
  if (!answer.ok()) return report.Failure(answer.status());
  client::GrantTimes times{.waited = FromMessage(answer->waited()),
                           .lease = FromMessage(answer->lease()),
                           .max_hold_remaining = std::nullopt,
                           .safety_margin = FromMessage(answer->safety_margin())};
  if (answer->has_max_hold_remaining()) {
    times.max_hold_remaining = FromMessage(answer->max_hold_remaining());
  }
  const absl::Duration remaining = Remaining(sent, times);
  report.Answer(
      {{"renewed", true},
       {"key", options.key},
       {"valid_for_ms", absl::ToInt64Milliseconds(remaining)}},
      absl::StrCat("renewed ", options.key, ", valid for another ", DurationText(remaining), "\n"));
  return kExitOk;
}

int Execute(const GlobalOptions& global, const ReleaseOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::ReleaseRequest request;
  request.set_namespace_(global.ns);
  request.set_key(options.key);
  request.set_owner(options.owner);
  request.set_hold_id(options.hold_id);
  const auto answer = client::Client(*channel).Release(request);
  if (!answer.ok()) return report.Failure(answer.status());
  const uint32_t left = answer->remaining_count();
  report.Answer({{"released", true}, {"key", options.key}, {"remaining_count", left}},
                absl::StrCat("released ", options.key,
                             left == 0 ? "" : absl::StrCat(", still held ", left, " times"), "\n"));
  return kExitOk;
}

}  // namespace holdfast::cli
