// SPDX-License-Identifier: Apache-2.0
//
// What is published to those who watch, as scripts/common_watch.lua says it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/base/key_news.h"
#include "src/store/redis/key_layout.h"

namespace holdfast::redis {

struct HeardNews {
  KeyNews news;
  bool key_was_free = false;  // kGranted: whoever had the key before has nothing left of it
};

// One message. An element without a value: some news may have been missed there.
std::vector<std::optional<HeardNews>> DecodeNews(absl::string_view message,
                                                 const KeyLayout& layout);

std::string EncodeNews(const KeyNews& news, const KeyLayout& layout);
// Tells everybody that something may have been missed.
std::string EncodeMissed();

}  // namespace holdfast::redis
