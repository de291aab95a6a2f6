// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/key_lines.h"

#include <algorithm>

#include "src/base/limits.h"

namespace holdfast::memory {

void KeyLines::Enter(const KeyName& name, const Place& place) {
  Line& line = lines_[name];
  if (std::find(line.begin(), line.end(), place) == line.end()) line.push_back(place);
}

void KeyLines::Leave(const KeyName& name, const Place& place) {
  Remove(name, [&](const Place& other) { return other == place; });
}

void KeyLines::LeaveAll(const KeyName& name, const std::string& daemon) {
  Remove(name, [&](const Place& other) { return other.daemon == daemon; });
}

void KeyLines::Served(const KeyName& name, const Place& place) {
  Remove(name, [&](const Place& other) {
    return other.daemon == place.daemon && other.number > 0 && other.number <= place.number;
  });
}

void KeyLines::Remove(const KeyName& name, const std::function<bool(const Place&)>& which) {
  const auto it = lines_.find(name);
  if (it == lines_.end()) return;
  std::erase_if(it->second, which);
  if (it->second.empty()) lines_.erase(it);
}

void KeyLines::DropDead(const KeyName& name, BootTime now) {
  Remove(name, [&](const Place& place) {
    const auto heard = heard_.find(place.daemon);
    return heard == heard_.end() || heard->second.at + limits::kDaemonSilence <= now;
  });
}

std::vector<Place> KeyLines::Standing(const KeyName& name, size_t max, BootTime now) {
  DropDead(name, now);
  const auto it = lines_.find(name);
  if (it == lines_.end()) return {};
  const Line& line = it->second;
  return {line.begin(), line.begin() + static_cast<std::ptrdiff_t>(std::min(max, line.size()))};
}

const Place* KeyLines::First(const KeyName& name, BootTime now) {
  DropDead(name, now);
  const auto it = lines_.find(name);
  if (it == lines_.end()) return nullptr;
  for (const Place& place : it->second) {
    if (!heard_.at(place.daemon).passed_over) return &place;
  }
  return nullptr;
}

bool KeyLines::HasAny(const KeyName& name, const std::string& daemon) const {
  const auto it = lines_.find(name);
  return it != lines_.end() && std::any_of(it->second.begin(), it->second.end(),
                                           [&](const Place& p) { return p.daemon == daemon; });
}

}  // namespace holdfast::memory
