// SPDX-License-Identifier: Apache-2.0
#include "src/store/redis/opening.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/base/status.h"

namespace holdfast::redis {
namespace {

absl::Status Unfit(absl::string_view why) { return Fail(Reason::kStoreUnreachable, "", why); }

constexpr int64_t kFine = 1;
constexpr int64_t kNewerFormat = 12;

}  // namespace

Opening::Opening(Connection* connection, const KeyLayout& layout, ScriptSet* scripts, bool no_grace,
                 std::function<uint64_t()> random, LogFunction log)
    : connection_(connection),
      layout_(layout),
      scripts_(scripts),
      random_(std::move(random)),
      log_(std::move(log)),
      no_grace_(no_grace) {}

void Opening::Begin(const Done& done) {
  client_id_ = 0;
  incarnation_.clear();
  AskWho([this, done] {
    connection_->Call({"CLIENT", "ID"}, [this, done](const redisReply* reply) {
      if (reply == nullptr) return;
      if (reply->type == REDIS_REPLY_INTEGER) client_id_ = reply->integer;
      if (IsError(reply)) {
        log_(LogLevel::kWarn, absl::StrCat("redis: CLIENT ID: ", TextOf(reply)));
      }
      Prepare(done);
    });
  });
}

void Opening::Again(const Done& done) {
  AskWho([this, done] { Open(done); });
}

// Errors show as a missing role, so one check in Open() is enough.
void Opening::AskWho(const std::function<void()>& then) {
  server_ = ServerInfo();
  connection_->Call({"INFO", "server"}, [this](const redisReply* reply) {
    if (reply != nullptr && !IsError(reply)) ParseInfo(TextOf(reply), &server_);
  });
  connection_->Call({"INFO", "replication"}, [this, then](const redisReply* reply) {
    if (reply == nullptr) return;
    if (IsError(reply)) {
      server_.role = std::string(TextOf(reply));
    } else {
      ParseInfo(TextOf(reply), &server_);
    }
    then();
  });
}

void Opening::Prepare(const Done& done) {
  // What lies unread in the last connection's socket dies with it. Client ids are only unique
  // within one run of the server; another run has nothing of that connection.
  if (old_client_id_ != 0 && old_run_id_ == server_.run_id) {
    connection_->Call(
        {"CLIENT", "KILL", "ID", absl::StrCat(old_client_id_)}, [this](const redisReply* reply) {
          if (IsError(reply) && TextOf(reply).substr(0, 6) == "NOPERM") {
            log_(LogLevel::kWarn, absl::StrCat("redis: CLIENT KILL: ", TextOf(reply)));
          }
        });
  }
  connection_->Call({"CLIENT", "SETNAME", "holdfast"}, [](const redisReply*) {});
  scripts_->Build(server_);
  for (Script script : kAllScripts) {
    connection_->Call(
        {"SCRIPT", "LOAD", scripts_->text(script)}, [this, script](const redisReply* reply) {
          if (reply == nullptr) return;
          if (IsError(reply)) {
            log_(LogLevel::kError, absl::StrCat("redis: SCRIPT LOAD: ", TextOf(reply)));
          }
          scripts_->set_sha(script, TextOf(reply));
        });
  }
  Open(done);
}

void Opening::Open(const Done& done) {
  if (server_.role != "master") {
    return done(Unfit(server_.role == "slave" ? "the server is a replica"
                                              : absl::StrCat("the server does not say that it is a "
                                                             "primary: ",
                                                             server_.role)));
  }
  if (!server_.run_id.empty()) {
    incarnation_ = server_.Incarnation();
  } else if (incarnation_.empty()) {
    incarnation_ = absl::StrFormat("hidden:%016x%016x", random_(), random_());
  }
  connection_->Call({"EVAL", scripts_->open_text(), "1", layout_.state_key(), incarnation_,
                     no_grace_ ? "1" : "0", seen_.count(server_.run_id) != 0 ? "1" : "0"},
                    [this, done](const redisReply* reply) {
                      if (reply != nullptr) Judge(*reply, done);
                    });
}

void Opening::Judge(const redisReply& reply, const Done& done) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 4) {
    return done(Unfit(absl::StrCat("the server cannot be used: ", TextOf(&reply))));
  }
  const int64_t code = reply.element[0]->integer;
  if (code == kNewerFormat) {
    return done(Unfit(absl::StrCat("the data under ", layout_.state_key(), " has format ",
                                   TextOf(reply.element[3]),
                                   ", which is newer than this daemon knows; upgrade it")));
  }
  if (code != kFine) return done(Unfit(absl::StrCat("open.lua answered ", code)));
  no_grace_ = false;
  const bool same_server = old_run_id_ == server_.run_id;
  old_run_id_ = server_.run_id;
  old_client_id_ = client_id_;
  seen_.insert(server_.run_id);
  done(Outcome{incarnation_, absl::Milliseconds(reply.element[1]->integer),
               std::string(TextOf(reply.element[3])), same_server});
}

}  // namespace holdfast::redis
