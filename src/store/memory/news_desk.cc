// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/news_desk.h"

namespace holdfast::memory {
namespace {

KeyNews NewsOf(KeyNews::Kind kind, const KeyName& name, const KeyRecord& record,
               const HoldRecord& hold) {
  KeyNews news;
  news.kind = kind;
  news.name = name;
  news.owner = hold.owner;
  news.hold_id = hold.hold_id;
  news.session = hold.session;
  news.mode = record.mode;
  news.token = record.mode == Mode::kPermit ? hold.number : record.token;
  news.note = hold.note;
  return news;
}

}  // namespace

void NewsDesk::Granted(const KeyName& name, const KeyRecord& record, const HoldRecord& hold,
                       BootTime now) {
  if (!open_) return;
  KeyNews news = NewsOf(KeyNews::Kind::kGranted, name, record, hold);
  news.lease = hold.deadline - now;
  news_.push_back(std::move(news));
}

void NewsDesk::Ended(KeyNews::Kind kind, const KeyName& name, const KeyRecord& record,
                     const HoldRecord& hold, LossReason reason) {
  if (!open_) return;
  KeyNews news = NewsOf(kind, name, record, hold);
  news.reason = reason;
  news_.push_back(std::move(news));
}

}  // namespace holdfast::memory
