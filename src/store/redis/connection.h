// SPDX-License-Identifier: Apache-2.0
//
// A connection to one Redis server that comes back by itself: resolves,
// connects, logs in, watches for silence, and after a break tries again with
// growing, jittered pauses. Its owner hears of each beginning and each end and
// says, on top of that, when the server turned out to be fit for use.
//
// Everything happens on the loop's thread. SIGPIPE has to be ignored in the
// process (hiredis writes with plain send); Start() sees to it where nobody did.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/store/redis/async_socket.h"
#include "src/store/redis/redis_url.h"
#include "src/store/redis/resp_writer.h"
#include "src/store/redis/uv_timer.h"

namespace holdfast::redis {

// Takes the reply to one command.
class ReplyHandler {
 public:
  virtual ~ReplyHandler() = default;
  // Valid during the call; null where the connection broke first. Called once for each Send().
  virtual void OnReply(const redisReply* reply) = 0;
};

class Connection final : private AsyncSocket::Listener {
 public:
  struct Options {
    RedisUrl url;
    absl::Duration connect_timeout = absl::Seconds(2);
    // So long without any reply while one is due, and the connection counts as broken.
    absl::Duration reply_timeout = absl::Seconds(2);
    absl::Duration min_pause = absl::Milliseconds(50);
    absl::Duration max_pause = absl::Seconds(2);
    std::function<uint64_t()> random;  // for the jitter
  };

  class Owner {
   public:
    virtual ~Owner() = default;
    // Connected and logged in.
    virtual void OnConnected() = 0;
    // The connection, or the attempt at one, is over. Every handler has been called.
    virtual void OnDisconnected(const std::string& why) = 0;
  };

  // `clock` and `owner` outlive the connection.
  Connection(Options options, uv_loop_t* loop, const Clock& clock, Owner* owner);
  ~Connection() override;

  // Begins to connect. A failure is one of the options (a certificate that cannot be read).
  absl::Status Start();

  // Appends a command. The handler lives until it is called. False: the connection is over or about
  // to be, and the handler will not be called.
  bool Send(absl::string_view wire, ReplyHandler* handler);
  // The same for people's pace: `fn` is called once.
  bool Call(std::initializer_list<absl::string_view> args,
            std::function<void(const redisReply*)> fn);
  // Appends a SUBSCRIBE or UNSUBSCRIBE of one channel. `handler` gets its confirmations and
  // messages and has to outlive the connection.
  bool Subscribe(absl::string_view channel, ReplyHandler* handler);
  bool Unsubscribe(absl::string_view channel);

  // Writes what was appended since the last Flush(). Once per turn of the loop.
  void Flush() { socket_->Flush(); }

  // Gives this connection up and tries anew. For servers that are not what they should be, too.
  void Break(std::string why) { socket_->Close(std::move(why)); }

  // The server is fit for use: the next break is followed by the shortest pause again.
  void Healthy() { pause_ = options_.min_pause; }

  // Ends it all; handlers get their null replies, the owner hears nothing any more.
  void Stop();

  bool connected() const { return connected_; }

 private:
  struct Resolution;

  void OnSocketConnected() override;
  void OnSocketClosed(std::string why) override;

  void Connect();
  void Resolve();
  void OnResolved(std::vector<std::string> addresses, const std::string& error);
  void ConnectTo(const std::string& address);
  void LogIn();
  void Ended(const std::string& why);
  void OnSilenceCheck();
  void Expect();
  void Arrived();

  const Options options_;
  uv_loop_t* const loop_;
  const Clock& clock_;
  Owner* const owner_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<AsyncSocket> socket_;  // from Start() on
  UvTimer attempt_timer_;                // the pause before an attempt, then the attempt's limit
  UvTimer silence_timer_;
  Resolution* resolution_ = nullptr;  // running; owned by the loop
  RespWriter writer_;
  size_t attempts_ = 0;
  absl::Duration pause_;
  bool stopped_ = false;
  bool connected_ = false;
  bool pausing_ = false;
  size_t due_ = 0;          // replies that have not come
  BootTime last_progress_;  // the last reply, or the first command after all were answered
  bool suspect_ = false;    // silent for too long, unless the loop itself was late
};

// What a Redis reply says as text; "" for what is none.
absl::string_view TextOf(const redisReply* reply);
bool IsError(const redisReply* reply);

}  // namespace holdfast::redis
