// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/record_codec.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace holdfast::memory {
namespace {

using nlohmann::json;

// 1: exclusive holds only.
constexpr int kFormat = 2;

// Each answers false where the field is missing or of another type.
bool Read(const json& object, const char* field, std::string& out) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_string()) return false;
  out = it->get_ref<const std::string&>();
  return true;
}

bool Read(const json& object, const char* field, int64_t& out) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_number_integer()) return false;
  out = it->get<int64_t>();
  return true;
}

bool Read(const json& object, const char* field, uint32_t& out) {
  int64_t number = 0;
  if (!Read(object, field, number) || number < 0 || number > UINT32_MAX) return false;
  out = static_cast<uint32_t>(number);
  return true;
}

bool Read(const json& object, const char* field, BootTime& out) {
  int64_t nanos = 0;
  if (!Read(object, field, nanos) || nanos < 0) return false;
  out = BootTime::FromNanos(nanos);
  return true;
}

bool Read(const json& object, const char* field, absl::Duration& out) {
  int64_t nanos = 0;
  if (!Read(object, field, nanos) || nanos < 0) return false;
  out = absl::Nanoseconds(nanos);
  return true;
}

bool Read(const json& object, const char* field, Mode& out) {
  int64_t number = 0;
  if (!Read(object, field, number) || number < 1 || number > 3) return false;
  out = static_cast<Mode>(number);
  return true;
}

bool Read(const json& object, const char* field, std::vector<std::string>& out) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_array()) return false;
  for (const json& item : *it) {
    if (!item.is_string()) return false;
    out.push_back(item.get_ref<const std::string&>());
  }
  return true;
}

bool Read(const json& object, const char* field, std::vector<BootTime>& out) {
  const auto it = object.find(field);
  if (it == object.end() || !it->is_array()) return false;
  for (const json& item : *it) {
    if (!item.is_number_integer()) return false;
    out.push_back(BootTime::FromNanos(item.get<int64_t>()));
  }
  return true;
}

json Encode(const HoldRecord& hold) {
  return {{"owner", hold.owner},
          {"id", hold.hold_id},
          {"session", hold.session},
          {"epoch", hold.epoch},
          {"count", hold.count},
          {"number", hold.number},
          {"delay", absl::ToInt64Nanoseconds(hold.release_delay)},
          {"granted", hold.granted_at.nanos()},
          {"deadline", hold.deadline.nanos()},
          {"max", hold.max_until.nanos()},
          {"min", hold.min_until.nanos()},
          {"note", hold.note},
          {"ops", hold.ops}};
}

bool Decode(const json& object, int64_t format, HoldRecord& hold) {
  return object.is_object() && Read(object, "owner", hold.owner) &&
         Read(object, "id", hold.hold_id) && Read(object, "session", hold.session) &&
         Read(object, "epoch", hold.epoch) && Read(object, "count", hold.count) &&
         (format == 1 ||
          (Read(object, "number", hold.number) && Read(object, "delay", hold.release_delay))) &&
         Read(object, "granted", hold.granted_at) && Read(object, "deadline", hold.deadline) &&
         Read(object, "max", hold.max_until) && Read(object, "min", hold.min_until) &&
         Read(object, "note", hold.note) && Read(object, "ops", hold.ops);
}

}  // namespace

std::string EncodeRecord(const KeyName& name, const KeyRecord& record) {
  json object = {{"v", kFormat},
                 {"ns", name.ns},
                 {"key", name.key},
                 {"mode", static_cast<int>(record.mode)},
                 {"limit", record.limit},
                 {"token", record.token},
                 {"kept", record.kept_until.nanos()},
                 {"kept_permits", json::array()},
                 {"holds", json::array()}};
  for (BootTime kept : record.kept_permits) object["kept_permits"].push_back(kept.nanos());
  for (const HoldRecord& hold : record.holds) object["holds"].push_back(Encode(hold));
  std::string bytes;
  json::to_cbor(object, bytes);
  return bytes;
}

std::optional<NamedRecord> DecodeRecord(absl::string_view bytes) {
  const json object = json::from_cbor(bytes.begin(), bytes.end(), /*strict=*/true,
                                      /*allow_exceptions=*/false);
  NamedRecord named;
  int64_t format = 0;
  if (!object.is_object() || !Read(object, "v", format) || format < 1 || format > kFormat ||
      !Read(object, "ns", named.name.ns) || !Read(object, "key", named.name.key) ||
      !Read(object, "token", named.record.token) ||
      !Read(object, "kept", named.record.kept_until)) {
    return std::nullopt;
  }
  KeyRecord& record = named.record;
  if (format > 1 && (!Read(object, "mode", record.mode) || !Read(object, "limit", record.limit) ||
                     !Read(object, "kept_permits", record.kept_permits))) {
    return std::nullopt;
  }
  const auto holds = object.find("holds");
  if (holds == object.end() || !holds->is_array()) return std::nullopt;
  for (const json& item : *holds) {
    if (!Decode(item, format, record.holds.emplace_back())) return std::nullopt;
  }
  return named;
}

}  // namespace holdfast::memory
