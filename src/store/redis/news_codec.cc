// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/news_codec.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace holdfast::redis {
namespace {

// The fields of a piece of news, in order. More of them, of a later version, are passed over.
enum Field : size_t {
  kKind,
  kKey,
  kHold,
  kOwner,
  kSession,
  kMode,
  kToken,
  kNote,
  kNumber,
  kFresh,
  kFields
};

std::string Text(absl::string_view text) { return absl::StrCat(text.size(), ":", text); }

// Takes the first netstring off `text`.
std::optional<absl::string_view> TakeText(absl::string_view* text) {
  const size_t colon = text->find(':');
  size_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text->substr(0, colon), &size) ||
      size > text->size() - colon - 1) {
    return std::nullopt;
  }
  const absl::string_view taken = text->substr(colon + 1, size);
  text->remove_prefix(colon + 1 + size);
  return taken;
}

std::optional<KeyNews::Kind> KindOf(absl::string_view letter) {
  if (letter == "G") return KeyNews::Kind::kGranted;
  if (letter == "R") return KeyNews::Kind::kReleased;
  if (letter == "L") return KeyNews::Kind::kLost;
  if (letter == "U") return KeyNews::Kind::kUndone;
  if (letter == "W") return KeyNews::Kind::kWaiting;
  return std::nullopt;
}

absl::string_view LetterOf(KeyNews::Kind kind) {
  switch (kind) {
    case KeyNews::Kind::kGranted:
      return "G";
    case KeyNews::Kind::kReleased:
      return "R";
    case KeyNews::Kind::kLost:
      return "L";
    case KeyNews::Kind::kUndone:
      return "U";
    case KeyNews::Kind::kWaiting:
      return "W";
  }
  return "?";
}

int64_t Number(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

int64_t NumberOf(const KeyNews& news) {
  switch (news.kind) {
    case KeyNews::Kind::kGranted:
      return absl::ToInt64Milliseconds(news.lease);
    case KeyNews::Kind::kLost:
      return static_cast<int64_t>(news.reason);
    case KeyNews::Kind::kWaiting:
      return news.queue_length;
    case KeyNews::Kind::kReleased:
    case KeyNews::Kind::kUndone:
      break;
  }
  return 0;
}

void SetNumber(KeyNews& news, int64_t number) {
  if (news.kind == KeyNews::Kind::kGranted) {
    news.lease = absl::Milliseconds(number);
  } else if (news.kind == KeyNews::Kind::kWaiting) {
    news.queue_length = static_cast<uint32_t>(number);
  } else if (news.kind == KeyNews::Kind::kLost && number >= 1 &&
             number <= static_cast<int64_t>(LossReason::kDrained)) {
    news.reason = static_cast<LossReason>(number);
  }
}

// nullopt: nothing that this version knows, or torn.
std::optional<HeardNews> DecodeOne(absl::string_view text, const KeyLayout& layout) {
  absl::string_view fields[kFields];
  for (absl::string_view& field : fields) {
    const std::optional<absl::string_view> taken = TakeText(&text);
    if (!taken.has_value()) return std::nullopt;
    field = *taken;
  }
  const std::optional<KeyNews::Kind> kind = KindOf(fields[kKind]);
  std::optional<KeyName> name = layout.NameOf(fields[kKey]);
  if (!kind.has_value() || !name.has_value()) return std::nullopt;
  HeardNews heard;
  KeyNews& news = heard.news;
  news.kind = *kind;
  news.name = *std::move(name);
  news.hold_id = std::string(fields[kHold]);
  news.owner = std::string(fields[kOwner]);
  news.session = std::string(fields[kSession]);
  const int64_t mode = Number(fields[kMode]);
  if (mode >= 1 && mode <= 3) news.mode = static_cast<Mode>(mode);
  news.token = Number(fields[kToken]);
  news.note = std::string(fields[kNote]);
  SetNumber(news, Number(fields[kNumber]));
  heard.key_was_free = fields[kFresh] == "1";
  return heard;
}

}  // namespace

std::vector<std::optional<HeardNews>> DecodeNews(absl::string_view message,
                                                 const KeyLayout& layout) {
  std::vector<std::optional<HeardNews>> all;
  while (!message.empty()) {
    const std::optional<absl::string_view> one = TakeText(&message);
    all.push_back(one.has_value() ? DecodeOne(*one, layout) : std::nullopt);
    if (!one.has_value()) break;
  }
  return all;
}

std::string EncodeNews(const KeyNews& news, const KeyLayout& layout) {
  return Text(absl::StrCat(Text(LetterOf(news.kind)), Text(layout.LockKey(news.name)),
                           Text(news.hold_id), Text(news.owner), Text(news.session),
                           Text(absl::StrCat(static_cast<int>(news.mode))),
                           Text(absl::StrCat(news.token)), Text(news.note),
                           Text(absl::StrCat(NumberOf(news))), Text("0")));
}

std::string EncodeMissed() { return Text("?"); }

}  // namespace holdfast::redis
