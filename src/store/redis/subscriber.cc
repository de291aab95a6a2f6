// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/subscriber.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast::redis {
namespace {

// A connection that only listens would not notice that its server is gone.
constexpr absl::Duration kPingEvery = absl::Seconds(2);

}  // namespace

Subscriber::Subscriber(Connection::Options options, uv_loop_t* loop, const Clock& clock,
                       const KeyLayout& layout, LogFunction log, Listener* listener)
    : options_(std::move(options)),
      loop_(loop),
      clock_(clock),
      layout_(layout),
      log_(std::move(log)),
      listener_(listener),
      ping_timer_(loop, [this] { Ping(); }) {}

Subscriber::~Subscriber() { Stop(); }

void Subscriber::Subscribe(uint64_t request_id, const KeyName& name) {
  Channel& channel = channels_[layout_.Channel(name)];
  channel.name = name;
  Request(layout_.Channel(name), &channel, request_id);
}

void Subscriber::SubscribeNews(uint64_t request_id) {
  Channel& channel = channels_[layout_.WatchChannel()];
  channel.news = true;
  Request(layout_.WatchChannel(), &channel, request_id);
}

void Subscriber::Request(const std::string& channel_name, Channel* channel, uint64_t request_id) {
  const bool live = channel->wanted && channel->unconfirmed == 0 && connection_ != nullptr &&
                    connection_->connected();
  if (live) return listener_->OnSubscribed(request_id);
  channel->requests.push_back(request_id);
  if (connection_ == nullptr) {
    Connection::Owner* const self = this;
    connection_ = std::make_unique<Connection>(options_, loop_, clock_, self);
    absl::Status status = connection_->Start();
    if (!status.ok()) log_(LogLevel::kError, absl::StrCat("redis: ", status.ToString()));
  }
  if (!channel->wanted) {
    channel->wanted = true;
    if (connection_->connected()) SendSubscribe(channel_name, channel);
  }
}

void Subscriber::Unsubscribe(const KeyName& name) { Drop(layout_.Channel(name)); }

void Subscriber::UnsubscribeNews() { Drop(layout_.WatchChannel()); }

void Subscriber::Drop(const std::string& channel_name) {
  const auto it = channels_.find(channel_name);
  if (it == channels_.end() || !it->second.wanted) return;
  it->second.wanted = false;
  it->second.confirmed_before = false;
  if (connection_->connected()) connection_->Unsubscribe(it->first);
  if (it->second.unconfirmed > 0 || !it->second.requests.empty()) return;
  channels_.erase(it);
}

void Subscriber::SendSubscribe(const std::string& channel_name, Channel* channel) {
  if (connection_->Subscribe(channel_name, this)) ++channel->unconfirmed;
}

void Subscriber::Flush() {
  if (connection_ != nullptr) connection_->Flush();
}

void Subscriber::OnConnected() {
  connection_->Healthy();
  last_failure_.clear();
  connection_->Call({"CLIENT", "SETNAME", "holdfast-wakeups"}, [](const redisReply*) {});
  for (auto& [channel_name, channel] : channels_) {
    if (channel.wanted || !channel.requests.empty()) SendSubscribe(channel_name, &channel);
  }
  ping_timer_.Start(kPingEvery);
}

void Subscriber::OnDisconnected(const std::string& why) {
  ping_timer_.Stop();
  if (why != last_failure_) {
    log_(LogLevel::kWarn, absl::StrCat("redis: the connection for wake-ups is down: ", why));
    last_failure_ = why;
  }
  for (auto it = channels_.begin(); it != channels_.end();) {
    Channel& channel = it->second;
    channel.confirmed_before =
        channel.wanted && (channel.confirmed_before || channel.requests.empty());
    channel.unconfirmed = 0;
    const bool unused = !channel.wanted && channel.requests.empty();
    if (unused) {
      channels_.erase(it++);
    } else {
      ++it;
    }
  }
}

// A confirmation, a message, or the answer to an UNSUBSCRIBE: [kind, channel, ...].
void Subscriber::OnReply(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3) return;
  const absl::string_view kind = TextOf(reply->element[0]);
  const std::string channel_name(TextOf(reply->element[1]));
  if (kind == "subscribe") return OnConfirmed(channel_name);
  if (kind != "message") return;
  const auto it = channels_.find(channel_name);
  if (it == channels_.end() || !it->second.wanted) return;
  if (it->second.news) return listener_->OnNews(TextOf(reply->element[2]));
  const KeyName name = it->second.name;
  listener_->OnWake(name, TextOf(reply->element[2]));
}

void Subscriber::OnConfirmed(const std::string& channel_name) {
  const auto it = channels_.find(channel_name);
  if (it == channels_.end()) return;
  Channel& channel = it->second;
  if (channel.unconfirmed > 0 && --channel.unconfirmed > 0) return;
  const std::vector<uint64_t> requests = std::move(channel.requests);
  channel.requests.clear();
  const bool wake = channel.wanted && std::exchange(channel.confirmed_before, false);
  const KeyName name = channel.name;
  const bool news = channel.news;
  if (!channel.wanted) {
    connection_->Unsubscribe(channel_name);
    channels_.erase(it);
  }
  for (uint64_t id : requests) listener_->OnSubscribed(id);
  if (wake && news) {
    listener_->OnNewsGap();
  } else if (wake) {
    listener_->OnWake(name, "");
  }
}

void Subscriber::Ping() {
  if (connection_ == nullptr || !connection_->connected()) return;
  if (!channels_.empty()) {
    connection_->Call({"PING"}, [](const redisReply*) {});
    connection_->Flush();
  }
  ping_timer_.Start(kPingEvery);
}

void Subscriber::Clear() {
  Stop();
  connection_.reset();
  absl::flat_hash_map<std::string, Channel> gone = std::move(channels_);
  channels_.clear();
  for (const auto& [channel_name, channel] : gone) {
    for (uint64_t id : channel.requests) listener_->OnSubscriptionLost(id);
  }
}

void Subscriber::Stop() {
  ping_timer_.Stop();
  if (connection_ != nullptr) connection_->Stop();
}

}  // namespace holdfast::redis
