// SPDX-License-Identifier: Apache-2.0
#include "src/store/memory/memory_store.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/store/memory/lock_table.h"
#include "src/store/memory/state_folder.h"
#include "src/store/memory/token_source.h"

namespace holdfast {
namespace memory {
namespace {

// How many keys one turn of the loop frees because they are over.
constexpr size_t kSweepKeys = 1000;
// The loop's timers stand still while the machine sleeps, so none is longer than that.
constexpr absl::Duration kLongestTimer = absl::Seconds(1);

StoreEvent Event(StoreEvent::Kind kind, std::string detail) {
  StoreEvent event;
  event.kind = kind;
  event.detail = std::move(detail);
  return event;
}

class MemoryStore final : public Store, public TableObserver {
 public:
  MemoryStore(MemoryStoreOptions options, uv_loop_t* loop)
      : options_(std::move(options)), loop_(loop) {}
  ~MemoryStore() override { Stop(); }

  absl::Status Start(StoreListener* listener) override;
  void Submit(StoreRequest request) override { pending_.push_back(std::move(request)); }
  void Flush() override;
  std::string Describe() const override { return absl::StrCat("memory:", options_.folder); }
  void Stop() override;

 private:
  absl::Status OpenFolder(FolderContents* contents);
  void BeforeChange(const KeyName& name, const KeyRecord* before) override;
  std::optional<StoreReply> CarryOut(const StoreRequest& request, BootTime now, bool followed);
  // Writes the batch, or undoes it.
  absl::Status Persist();
  void UndoChanges();
  void MindGrace(BootTime now);
  void Announce(BootTime now);
  void TellNews(bool persisted);
  void ArmTimer(BootTime now);

  const MemoryStoreOptions options_;
  uv_loop_t* const loop_;
  uv_timer_t* timer_ = nullptr;  // freed by the loop after it was closed
  StoreListener* listener_ = nullptr;
  std::unique_ptr<StateFolder> folder_;  // null: without
  std::unique_ptr<TokenCounter> tokens_;
  std::unique_ptr<LockTable> table_;
  std::vector<StoreRequest> pending_;
  // What the keys that this batch changed were before it.
  absl::flat_hash_map<KeyName, std::optional<KeyRecord>> before_;
  absl::flat_hash_set<KeyName> subscribed_;
  std::string daemon_;  // of whoever has a place in line
  BootTime grace_until_;
  bool in_grace_ = false;
  bool sweep_failed_ = false;         // try again with the next timer only
  std::optional<std::string> story_;  // until kUp was announced
};

absl::Status MemoryStore::Start(StoreListener* listener) {
  listener_ = listener;
  const BootTime now = options_.clock->Now();
  FolderContents contents;
  if (options_.folder.empty()) {
    contents.story = "without a state folder";
    if (!options_.no_grace) contents.grace_until = now + options_.max_lease;
  } else if (absl::Status status = OpenFolder(&contents); !status.ok()) {
    return status;
  }

  TokenCounter::Reserve reserve;
  if (folder_ != nullptr) {
    reserve = [this](int64_t below) { return folder_->ReserveTokens(below); };
  }
  tokens_ = std::make_unique<TokenCounter>(options_.wall_clock, contents.last_token, reserve);
  table_ = std::make_unique<LockTable>(tokens_.get(), folder_ != nullptr ? this : nullptr);
  for (NamedRecord& named : contents.records) {
    table_->Restore(named.name, std::move(named.record));
  }
  grace_until_ = contents.grace_until;
  in_grace_ = grace_until_ > now;
  table_->SetGrace(grace_until_);
  story_ = std::move(contents.story);

  timer_ = new uv_timer_t;
  uv_timer_init(loop_, timer_);
  timer_->data = this;
  ArmTimer(now);
  return absl::OkStatus();
}

absl::Status MemoryStore::OpenFolder(FolderContents* contents) {
  FolderOptions options{.path = options_.folder,
                        .max_lease = options_.max_lease,
                        .no_grace = options_.no_grace,
                        .boot_id = options_.boot_id.empty() ? ReadBootId() : options_.boot_id,
                        .max_bytes = options_.max_bytes};
  auto folder = StateFolder::Open(std::move(options), options_.clock->Now(), contents);
  if (!folder.ok()) return folder.status();
  folder_ = *std::move(folder);
  return absl::OkStatus();
}

void MemoryStore::Stop() {
  if (timer_ != nullptr) {
    uv_close(reinterpret_cast<uv_handle_t*>(timer_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
    timer_ = nullptr;
    // Gives back what is left of the range, so that tokens do not run ahead of the clock.
    if (folder_ != nullptr && tokens_->last() > 0) {
      folder_->ReserveTokens(tokens_->last() + 1).IgnoreError();
    }
  }
  pending_.clear();
  folder_.reset();
}

void MemoryStore::Flush() {
  if (timer_ == nullptr) return;
  const BootTime now = options_.clock->Now();
  // A reply or an event may make the listener submit more: that is the next batch.
  const std::vector<StoreRequest> batch = std::exchange(pending_, {});
  // Whoever stands in a line here is a waiter of this very daemon.
  if (!daemon_.empty()) table_->Beat(daemon_, now);
  std::vector<StoreReply> replies;
  replies.reserve(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool followed = i + 1 < batch.size() && FollowsRelease(batch[i], batch[i + 1]);
    if (auto reply = CarryOut(batch[i], now, followed)) replies.push_back(*std::move(reply));
  }
  if (!sweep_failed_) table_->DropExpired(now, kSweepKeys);

  const absl::Status persisted = Persist();
  if (!persisted.ok()) {
    sweep_failed_ = true;
    for (StoreReply& reply : replies) {
      if (std::holds_alternative<Subscribed>(reply.result)) continue;
      reply.result = StoreFailure{.kind = StoreFailureKind::kOutOfMemory,
                                  .maybe_applied = false,
                                  .message = std::string(persisted.message())};
    }
  }
  MindGrace(now);
  Announce(now);
  for (StoreReply& reply : replies) listener_->OnStoreReply(std::move(reply));
  for (LockTable::Freed& freed : table_->TakeFreed()) {
    if (!persisted.ok() || !subscribed_.contains(freed.name)) continue;
    StoreEvent wake = Event(StoreEvent::Kind::kWake, "");
    wake.name = std::move(freed.name);
    wake.daemon = std::move(freed.daemon);
    listener_->OnStoreEvent(std::move(wake));
  }
  TellNews(persisted.ok());
  ArmTimer(now);
}

void MemoryStore::TellNews(bool persisted) {
  std::vector<KeyNews> all = table_->news().Take();
  if (all.empty()) return;
  // What was undone never happened, but what the engine had to tell did.
  if (!persisted) return listener_->OnStoreEvent(Event(StoreEvent::Kind::kNewsMissed, ""));
  for (KeyNews& news : all) {
    StoreEvent event = Event(StoreEvent::Kind::kNews, "");
    event.news = std::make_shared<const KeyNews>(std::move(news));
    listener_->OnStoreEvent(std::move(event));
  }
}

std::optional<StoreReply> MemoryStore::CarryOut(const StoreRequest& request, BootTime now,
                                                bool followed) {
  if (const auto* op = std::get_if<UnsubscribeOp>(&request.op)) {
    subscribed_.erase(op->name);
    return std::nullopt;
  }
  if (std::holds_alternative<UnwatchOp>(request.op)) {
    table_->news().Close();
    return std::nullopt;
  }
  if (const auto* op = std::get_if<TellOp>(&request.op)) {
    table_->news().Tell(op->news);
    return std::nullopt;
  }
  if (const auto* op = std::get_if<SubscribeOp>(&request.op)) subscribed_.insert(op->name);
  if (const auto* op = std::get_if<AcquireOp>(&request.op)) {
    if (daemon_.empty()) daemon_ = op->place.daemon;
  }
  return table_->Apply(request, now, followed);
}

void MemoryStore::BeforeChange(const KeyName& name, const KeyRecord* before) {
  const auto [it, is_first] = before_.try_emplace(name);
  if (is_first && before != nullptr) it->second = *before;
}

absl::Status MemoryStore::Persist() {
  if (before_.empty()) return absl::OkStatus();
  std::vector<HoldDatabase::Change> changes;
  changes.reserve(before_.size());
  for (const auto& [name, before] : before_) {
    const KeyRecord* const after = table_->Find(name);
    if (after == nullptr && !before.has_value()) continue;  // came and went in this batch
    changes.push_back({.name = &name, .record = after});
  }
  absl::Status status = changes.empty() ? absl::OkStatus() : folder_->Write(changes);
  if (!status.ok()) UndoChanges();
  before_.clear();
  return status;
}

void MemoryStore::UndoChanges() {
  for (auto& [name, before] : before_) table_->Restore(name, std::move(before));
}

void MemoryStore::MindGrace(BootTime now) {
  if (!in_grace_ || now < grace_until_ || story_.has_value()) return;
  in_grace_ = false;
  // Where that cannot be written, the next start waits once more for nothing.
  if (folder_ != nullptr) folder_->EndGrace().IgnoreError();
  listener_->OnStoreEvent(Event(StoreEvent::Kind::kGrace, "the grace period is over"));
}

void MemoryStore::Announce(BootTime now) {
  if (!story_.has_value()) return;
  listener_->OnStoreEvent(Event(StoreEvent::Kind::kUp, *story_));
  if (in_grace_) {
    StoreEvent grace = Event(StoreEvent::Kind::kGrace, *story_);
    grace.remaining = std::max(grace_until_ - now, absl::ZeroDuration());
    listener_->OnStoreEvent(std::move(grace));
  }
  story_.reset();
}

void MemoryStore::ArmTimer(BootTime now) {
  absl::Duration delay = table_->NextExpiry() - now;
  if (sweep_failed_) delay = kLongestTimer;
  if (in_grace_) delay = std::min(delay, grace_until_ - now);
  if (!pending_.empty() || story_.has_value()) delay = absl::ZeroDuration();
  if (delay == absl::InfiniteDuration()) {
    uv_timer_stop(timer_);
    return;
  }
  delay = std::clamp(delay, absl::ZeroDuration(), kLongestTimer);
  const auto on_timer = [](uv_timer_t* timer) {
    auto* const store = static_cast<MemoryStore*>(timer->data);
    store->sweep_failed_ = false;
    store->Flush();
  };
  uv_timer_start(
      timer_, on_timer,
      static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Ceil(delay, absl::Milliseconds(1)))),
      0);
}

}  // namespace
}  // namespace memory

std::unique_ptr<Store> MakeMemoryStore(MemoryStoreOptions options, uv_loop_t* loop) {
  return std::make_unique<memory::MemoryStore>(std::move(options), loop);
}

}  // namespace holdfast
