// SPDX-License-Identifier: Apache-2.0
//
// The store's second connection: it hears which keys were released. It begins
// with the first subscription. When it breaks it comes back, subscribes again,
// and reports every key as woken, because a release may have been missed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/base/names.h"
#include "src/store/redis/connection.h"
#include "src/store/redis/key_layout.h"
#include "src/store/redis/log.h"

namespace holdfast::redis {

class Subscriber final : private Connection::Owner, private ReplyHandler {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnSubscribed(uint64_t request_id) = 0;
    virtual void OnSubscriptionLost(uint64_t request_id) = 0;
    // `daemon`: whom alone it is for; empty: everybody.
    virtual void OnWake(const KeyName& name, absl::string_view daemon) = 0;
    virtual void OnNews(absl::string_view message) = 0;
    // Messages may have been missed while the connection was gone.
    virtual void OnNewsGap() = 0;
  };

  Subscriber(Connection::Options options, uv_loop_t* loop, const Clock& clock,
             const KeyLayout& layout, LogFunction log, Listener* listener);
  ~Subscriber() override;

  // OnSubscribed(request_id) follows when the server has confirmed it, maybe at once.
  void Subscribe(uint64_t request_id, const KeyName& name);
  void Unsubscribe(const KeyName& name);
  // The same for the channel of all news.
  void SubscribeNews(uint64_t request_id);
  void UnsubscribeNews();

  void Flush();

  // Forgets every subscription and closes the connection; those that were not confirmed are lost.
  void Clear();
  void Stop();

 private:
  struct Channel {
    KeyName name;
    bool news = false;  // the channel of all news; else that of `name`
    bool wanted = false;
    bool confirmed_before = false;  // on an earlier connection: wake when it is confirmed again
    int unconfirmed = 0;            // SUBSCRIBEs sent on this connection and not answered
    std::vector<uint64_t> requests;
  };

  void Request(const std::string& channel_name, Channel* channel, uint64_t request_id);
  void Drop(const std::string& channel_name);
  void OnConnected() override;
  void OnDisconnected(const std::string& why) override;
  void OnReply(const redisReply* reply) override;
  void OnConfirmed(const std::string& channel_name);
  void SendSubscribe(const std::string& channel_name, Channel* channel);
  void Ping();

  const Connection::Options options_;
  uv_loop_t* const loop_;
  const Clock& clock_;
  const KeyLayout& layout_;
  const LogFunction log_;
  Listener* const listener_;
  std::unique_ptr<Connection> connection_;  // null: nobody has subscribed
  UvTimer ping_timer_;
  absl::flat_hash_map<std::string, Channel> channels_;
  std::string last_failure_;
};

}  // namespace holdfast::redis
