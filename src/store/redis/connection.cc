// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast::redis {
namespace {

constexpr absl::Duration kSilenceCheck = absl::Milliseconds(250);

class FunctionHandler final : public ReplyHandler {
 public:
  explicit FunctionHandler(std::function<void(const redisReply*)> fn) : fn_(std::move(fn)) {}
  void OnReply(const redisReply* reply) override {
    fn_(reply);
    delete this;
  }

 private:
  std::function<void(const redisReply*)> fn_;
};

void IgnoreSigpipe() {
  struct sigaction current = {};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

bool IsAddress(const std::string& host) {
  unsigned char buffer[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), buffer) == 1 ||
         inet_pton(AF_INET6, host.c_str(), buffer) == 1;
}

}  // namespace

absl::string_view TextOf(const redisReply* reply) {
  if (reply == nullptr || reply->str == nullptr) return "";
  return absl::string_view(reply->str, reply->len);
}

bool IsError(const redisReply* reply) {
  return reply != nullptr && reply->type == REDIS_REPLY_ERROR;
}

// A running getaddrinfo. It cannot always be cancelled, so it outlives its connection if need be.
struct Connection::Resolution {
  uv_getaddrinfo_t request = {};
  Connection* connection = nullptr;

  static void Done(uv_getaddrinfo_t* request, int status, addrinfo* found) {
    std::unique_ptr<Resolution> self(static_cast<Resolution*>(request->data));
    std::vector<std::string> addresses;
    for (addrinfo* info = found; info != nullptr; info = info->ai_next) {
      char text[NI_MAXHOST];
      if (getnameinfo(info->ai_addr, info->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0) {
        addresses.emplace_back(text);
      }
    }
    uv_freeaddrinfo(found);
    if (self->connection == nullptr) return;
    self->connection->resolution_ = nullptr;
    self->connection->OnResolved(std::move(addresses), status == 0 ? "" : uv_strerror(status));
  }
};

Connection::Connection(Options options, uv_loop_t* loop, const Clock& clock, Owner* owner)
    : options_(std::move(options)),
      loop_(loop),
      clock_(clock),
      owner_(owner),
      attempt_timer_(loop,
                     [this] {
                       if (pausing_) return Connect();
                       if (socket_->open()) return socket_->Close("connecting took too long");
                       if (resolution_ != nullptr) resolution_->connection = nullptr;
                       resolution_ = nullptr;
                       Ended("resolving the host took too long");
                     }),
      silence_timer_(loop, [this] { OnSilenceCheck(); }),
      pause_(options_.min_pause) {}

Connection::~Connection() { Stop(); }

absl::Status Connection::Start() {
  IgnoreSigpipe();
  if (options_.url.transport == RedisUrl::Transport::kTls) {
    auto tls = TlsContext::Create(options_.url);
    if (!tls.ok()) return tls.status();
    tls_ = *std::move(tls);
  }
  AsyncSocket::Listener* const self = this;
  socket_ = std::make_unique<AsyncSocket>(loop_, tls_.get(), self);
  pausing_ = true;
  attempt_timer_.Start(absl::ZeroDuration());
  return absl::OkStatus();
}

void Connection::Stop() {
  if (stopped_) return;
  stopped_ = true;
  attempt_timer_.Stop();
  silence_timer_.Stop();
  if (resolution_ != nullptr) {
    resolution_->connection = nullptr;
    uv_cancel(reinterpret_cast<uv_req_t*>(&resolution_->request));
    resolution_ = nullptr;
  }
  if (socket_ != nullptr) socket_->Close("stopped");
}

void Connection::Connect() {
  pausing_ = false;
  attempt_timer_.Start(options_.connect_timeout);
  ++attempts_;
  const RedisUrl& url = options_.url;
  if (url.transport == RedisUrl::Transport::kUnix) {
    absl::Status status = socket_->ConnectUnix(url.path);
    if (!status.ok()) Ended(std::string(status.message()));
  } else if (IsAddress(url.host)) {
    ConnectTo(url.host);
  } else {
    Resolve();
  }
}

void Connection::Resolve() {
  auto* resolution = new Resolution;
  resolution->request.data = resolution;
  resolution->connection = this;
  resolution_ = resolution;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  const int error = uv_getaddrinfo(loop_, &resolution->request, Resolution::Done,
                                   options_.url.host.c_str(), nullptr, &hints);
  if (error != 0) {
    delete resolution;
    resolution_ = nullptr;
    Ended(uv_strerror(error));
  }
}

void Connection::OnResolved(std::vector<std::string> addresses, const std::string& error) {
  if (addresses.empty()) {
    return Ended(absl::StrCat("cannot resolve ", options_.url.host, ": ", error));
  }
  // Each attempt tries the next address of the host.
  ConnectTo(addresses[(attempts_ - 1) % addresses.size()]);
}

void Connection::ConnectTo(const std::string& address) {
  absl::Status status = socket_->ConnectTcp(address, options_.url.port);
  if (!status.ok()) Ended(std::string(status.message()));
}

void Connection::OnSocketConnected() {
  attempt_timer_.Stop();
  LogIn();
}

void Connection::LogIn() {
  const RedisUrl& url = options_.url;
  const auto refuse = [this](absl::string_view what, const redisReply* reply) {
    if (IsError(reply)) Break(absl::StrCat(what, ": ", TextOf(reply)));
  };
  if (!url.password.empty()) {
    const auto done = [refuse](const redisReply* r) { refuse("the login was refused", r); };
    if (url.user.empty()) {
      Call({"AUTH", url.password}, done);
    } else {
      Call({"AUTH", url.user, url.password}, done);
    }
  }
  Call({"SELECT", absl::StrCat(url.db)}, [this, refuse](const redisReply* reply) {
    refuse("the database was refused", reply);
    if (reply == nullptr || IsError(reply) || stopped_) return;
    connected_ = true;
    owner_->OnConnected();
  });
}

void Connection::OnSocketClosed(std::string why) {
  if (!stopped_) Ended(why);
}

void Connection::Ended(const std::string& why) {
  connected_ = false;
  due_ = 0;
  suspect_ = false;
  silence_timer_.Stop();
  owner_->OnDisconnected(why);
  if (stopped_) return;
  // Between half the pause and all of it, so that daemons do not come back in step.
  const double part = static_cast<double>(options_.random() % 1024) / 1023.0;
  pausing_ = true;
  attempt_timer_.Start(pause_ * (0.5 + part / 2));
  pause_ = std::min(pause_ * 2, options_.max_pause);
}

bool Connection::Send(absl::string_view wire, ReplyHandler* handler) {
  const auto callback = [](redisAsyncContext* context, void* reply, void* data) {
    auto* socket = static_cast<AsyncSocket*>(context->data);
    if (reply != nullptr) static_cast<Connection*>(socket->listener())->Arrived();
    static_cast<ReplyHandler*>(data)->OnReply(static_cast<redisReply*>(reply));
  };
  if (!socket_->Append(wire, callback, handler)) return false;
  Expect();
  return true;
}

bool Connection::Call(std::initializer_list<absl::string_view> args,
                      std::function<void(const redisReply*)> fn) {
  auto handler = std::make_unique<FunctionHandler>(std::move(fn));
  if (!Send(writer_.Command(args), handler.get())) return false;
  static_cast<void>(handler.release());
  return true;
}

bool Connection::Subscribe(absl::string_view channel, ReplyHandler* handler) {
  const auto callback = [](redisAsyncContext* context, void* data_reply, void* data) {
    auto* reply = static_cast<redisReply*>(data_reply);
    if (reply == nullptr) return;  // the end of the connection is told otherwise
    auto* socket = static_cast<AsyncSocket*>(context->data);
    if (reply->elements > 0 && TextOf(reply->element[0]) == "subscribe") {
      static_cast<Connection*>(socket->listener())->Arrived();
    }
    static_cast<ReplyHandler*>(data)->OnReply(reply);
  };
  if (!socket_->Append(writer_.Command({"SUBSCRIBE", channel}), callback, handler)) return false;
  Expect();
  return true;
}

bool Connection::Unsubscribe(absl::string_view channel) {
  return socket_->Append(writer_.Command({"UNSUBSCRIBE", channel}), nullptr, nullptr);
}

void Connection::Expect() {
  if (due_++ == 0) {
    last_progress_ = clock_.Now();
    suspect_ = false;
    if (!silence_timer_.active()) silence_timer_.Start(kSilenceCheck);
  }
}

void Connection::Arrived() {
  if (due_ > 0) --due_;
  suspect_ = false;
  last_progress_ = clock_.Now();
}

void Connection::OnSilenceCheck() {
  if (due_ == 0) return;
  if (clock_.Now() - last_progress_ <= options_.reply_timeout) {
    suspect_ = false;
    return silence_timer_.Start(std::min(kSilenceCheck, options_.reply_timeout / 4));
  }
  // Replies may lie unread because this loop was held up: look once more after it has read.
  if (suspect_)
    return Break(absl::StrCat("no reply for ", absl::FormatDuration(options_.reply_timeout)));
  suspect_ = true;
  silence_timer_.Start(absl::Milliseconds(1));
}

}  // namespace holdfast::redis
