// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/exit_codes.h"
#include "client/cli/report.h"
#include "client/lib/client.h"
#include "client/lib/endpoint.h"

namespace holdfast::cli {
namespace {

using nlohmann::json;

std::string Lower(std::string name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

std::string KindName(v1::WatchEventKind kind) {
  return Lower(v1::WatchEventKind_Name(kind), "WATCH_EVENT_KIND_");
}

json ToJson(const v1::WatchEvent& event) {
  json object = {{"event", KindName(event.kind())}};
  if (event.kind() == v1::WATCH_EVENT_KIND_GAP) return object;
  object["key"] = event.key();
  object["owner_fingerprint"] = event.owner_fingerprint();
  object["mode"] = Lower(v1::Mode_Name(event.mode()), "MODE_");
  object["note"] = event.note();
  if (event.kind() == v1::WATCH_EVENT_KIND_WAITING) {
    object["queue_length"] = event.queue_length();
    return object;
  }
  object["hold_id"] = event.hold_id();
  object["fencing_token"] = event.fencing_token();
  if (event.kind() == v1::WATCH_EVENT_KIND_LOST) {
    object["loss_reason"] = Lower(v1::LossReason_Name(event.loss_reason()), "LOSS_REASON_");
  }
  return object;
}

std::string TextOf(const v1::WatchEvent& event) {
  if (event.kind() == v1::WATCH_EVENT_KIND_GAP) {
    return "gap       events may have been missed: look again with `holdfast ls`\n";
  }
  const char* connection = event.kind() == v1::WATCH_EVENT_KIND_GRANTED ? " to " : " by ";
  if (event.kind() == v1::WATCH_EVENT_KIND_WAITING) connection = ": ";
  std::string kind = KindName(event.kind());
  kind.resize(10, ' ');
  std::string text = absl::StrCat(kind, event.key(), connection, event.owner_fingerprint());
  if (!event.note().empty()) absl::StrAppend(&text, " (", event.note(), ")");
  if (event.mode() == v1::MODE_SHARED) absl::StrAppend(&text, ", shared");
  if (event.mode() == v1::MODE_PERMIT) absl::StrAppend(&text, ", a permit");
  if (event.kind() == v1::WATCH_EVENT_KIND_WAITING) {
    absl::StrAppend(&text, ", ", event.queue_length(), " in line");
  } else if (event.mode() != v1::MODE_PERMIT) {
    absl::StrAppend(&text, ", token ", event.fencing_token());
  }
  if (event.kind() == v1::WATCH_EVENT_KIND_LOST) {
    absl::StrAppend(&text, ": ", Lower(v1::LossReason_Name(event.loss_reason()), "LOSS_REASON_"));
  }
  return absl::StrCat(text, "\n");
}

}  // namespace

int Execute(const GlobalOptions& global, const WatchOptions& options) {
  const Report report(global);
  const auto channel = client::Connect(global.address);
  if (!channel.ok()) return report.Failure(channel.status());
  v1::WatchRequest request;
  request.set_namespace_(global.ns);
  request.set_prefix(options.prefix);
  const absl::Status status = client::Client(*channel).Watch(
      request, [&] { report.Note("watching", "watching; end it with ctrl-c"); },
      [&](const v1::WatchEvent& event) {
        report.Answer(ToJson(event), TextOf(event));
        return true;
      });
  return status.ok() ? kExitOk : report.Failure(status);
}

}  // namespace holdfast::cli
