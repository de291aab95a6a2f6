// SPDX-License-Identifier: Apache-2.0
#include "server/daemon.h"

#include <sysexits.h>

#include <cstdio>
#include <future>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine_loop.h"
#include "server/front/front.h"
#include "server/front/grpc_server.h"
#include "server/log.h"
#include "server/random_ids.h"
#include "server/signals.h"
#include "server/store_factory.h"
#include "server/version.h"
#include "src/base/clock.h"
#include "src/base/durations.h"

namespace holdfast::server {
namespace {

// For clients to take in the end of their streams, once everything is given back.
constexpr absl::Duration kStreamsEndWithin = absl::Seconds(1);

// 0 means "none" to people, infinity to the engine.
absl::Duration MaxHoldOf(const Options& options) {
  return options.default_max_hold == absl::ZeroDuration() ? absl::InfiniteDuration()
                                                          : options.default_max_hold;
}

engine::EngineOptions EngineOptionsOf(const Options& options) {
  engine::EngineOptions to;
  to.max_lease = options.max_lease;
  to.default_max_hold = MaxHoldOf(options);
  to.default_fifo = options.default_fifo;
  to.behind_proxy = options.behind_proxy;
  to.release_delays = options.release_delays;
  return to;
}

// Where it serves, and what to try next. Parsed by nobody but for the `serving:` lines.
void PrintHello(const std::vector<std::string>& addresses, const std::string& store,
                const std::string& program) {
  const size_t slash = program.rfind('/');
  std::string command =
      slash == std::string::npos ? "holdfast" : absl::StrCat(program.substr(0, slash), "/holdfast");
  if (addresses.front() != Options().listen.front()) {
    absl::StrAppend(&command, " --address=", addresses.front());
  }
  std::string text;
  for (const std::string& address : addresses) absl::StrAppend(&text, "serving: ", address, "\n");
  absl::StrAppend(&text, "holdfastd ", Version(), " serves on ", absl::StrJoin(addresses, " and "),
                  ", store ", store, "\n", "Try:  ", command,
                  " run demo -- sh -c 'echo token $HOLDFAST_TOKEN'\n", "      ", command,
                  " inspect demo\n");
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// The parts, in the order in which they are started; they end the other way round.
class Daemon {
 public:
  explicit Daemon(const Options& options);
  int Run(const std::string& program);

 private:
  absl::Status Start();
  void OnServing(bool serving);
  void StartDrain(int signal);

  const Options& options_;
  MachineClock clock_;
  MachineWallClock wall_clock_;
  RandomIds ids_;
  std::promise<engine::DrainDone> drained_;
  EngineLoop loop_;
  Front front_;

  // The loop's thread reports before and while the server is there.
  std::mutex mutex_;
  bool serving_ = false;                // guarded by mutex_
  GrpcServer* health_ = nullptr;        // guarded by mutex_
  std::unique_ptr<GrpcServer> server_;  // the main thread's
};

Daemon::Daemon(const Options& options)
    : options_(options),
      loop_(
          EngineOptionsOf(options),
          [this](uv_loop_s* loop) {
            return MakeStore(StoreOptions{options_.store, options_.redis_prefix, options_.max_lease,
                                          options_.no_grace, front_.daemon_id},
                             loop, StoreParts{&clock_, &wall_clock_, &ids_});
          },
          &ids_, clock_,
          EngineLoop::Hooks{[this](bool serving) { OnServing(serving); },
                            [this](const engine::DrainDone& done) { drained_.set_value(done); }}),
      front_{&loop_,
             &clock_,
             ids_.NewId(),
             options.default_namespace,
             options.max_lease,
             MaxHoldOf(options),
             options.behind_proxy} {}

absl::Status Daemon::Start() {
  absl::Status status = loop_.Start();
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<GrpcServer>> server = GrpcServer::Start(options_.listen, front_);
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  const std::lock_guard<std::mutex> lock(mutex_);
  health_ = server_.get();
  health_->SetServing(serving_);
  return absl::OkStatus();
}

void Daemon::OnServing(bool serving) {
  const std::lock_guard<std::mutex> lock(mutex_);
  serving_ = serving;
  if (health_ != nullptr) health_->SetServing(serving);
}

void Daemon::StartDrain(int signal) {
  LogInfo("draining: no new work is taken, holders are told",
          {{"signal", absl::StrCat(signal)}, {"limit", DurationText(options_.drain_limit)}});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (health_ != nullptr) health_->SetDraining();
  }
  loop_.PostUnrefusable({0, nullptr, {engine::Drain{clock_.Now(), options_.drain_limit}}});
}

int Daemon::Run(const std::string& program) {
  SignalThread signals([this](int signal) { StartDrain(signal); });
  const absl::Status status = Start();
  if (!status.ok()) {
    LogError(status.message(), {{"store", MaskStoreUrl(options_.store)}});
    loop_.Stop();
    return EX_UNAVAILABLE;
  }
  PrintHello(server_->addresses(), loop_.store_description(), program);

  const engine::DrainDone done = drained_.get_future().get();
  server_->Shutdown(kStreamsEndWithin);
  loop_.Stop();
  if (done.left_to_lease > 0) {
    LogWarn("drained; some holds were not given back and end with their leases",
            {{"holds", absl::StrCat(done.left_to_lease)}});
  } else {
    LogInfo("drained");
  }
  return 0;
}

}  // namespace

int RunDaemon(const Options& options, const std::string& program) {
  InitLog(options.log_level, options.log_format);
  Daemon daemon(options);
  return daemon.Run(program);
}

}  // namespace holdfast::server
