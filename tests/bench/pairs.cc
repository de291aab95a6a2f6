// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pairs.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "tests/bench/stream.h"

namespace holdfast::bench {
namespace {

double Micros(absl::Duration duration) { return absl::ToDoubleMicroseconds(duration); }

class PairsLoad {
 public:
  PairsLoad(const std::string& address, int in_flight)
      : pairs_(static_cast<size_t>(in_flight)),
        stream_(&loop_, Connect(address), [this](const v1::SessionEvent& e) { OnEvent(e); }) {
    for (size_t i = 0; i < pairs_.size(); ++i) pairs_[i].key = absl::StrCat("bench:pair:", i);
  }

  absl::StatusOr<PairsResult> Run(absl::Duration span) {
    absl::Status status = loop_.RunUntil([this] { return stream_.opened(); });
    if (!status.ok()) return status;
    const BootTime begin = clock_.Now();
    end_ = begin + span;
    for (size_t i = 0; i < pairs_.size(); ++i) Acquire(i);
    stream_.Flush();
    status = loop_.RunUntil([this] { return busy_ == 0 || !failure_.ok(); });
    if (!status.ok()) return status;
    if (!failure_.ok()) return failure_;
    result_.count = static_cast<double>(result_.micros.size());
    result_.per_second = result_.count / absl::ToDoubleSeconds(last_ - begin);
    return std::move(result_);
  }

 private:
  struct Pair {
    std::string key;
    BootTime sent;
  };
  // Answers come nearly in order, so a command's place is free again long before it is needed.
  static constexpr size_t kPlaces = 1 << 16;

  v1::SessionCommand& Command(size_t pair) {
    v1::SessionCommand& command = stream_.Add();
    pair_of_[command.request_id() % kPlaces] = pair;
    return command;
  }

  void Acquire(size_t pair) {
    ++busy_;
    pairs_[pair].sent = clock_.Now();
    Command(pair).mutable_acquire()->set_key(pairs_[pair].key);
  }

  void OnEvent(const v1::SessionEvent& event) {
    if (!event.has_reply()) return;
    const size_t pair = pair_of_[event.reply().request_id() % kPlaces];
    if (event.reply().has_release()) {
      --busy_;
      last_ = clock_.Now();
      result_.micros.push_back(Micros(last_ - pairs_[pair].sent));
      if (last_ < end_) Acquire(pair);
    } else if (event.reply().acquire().has_grant()) {
      const v1::Grant& grant = event.reply().acquire().grant();
      v1::ReleaseRequest& release = *Command(pair).mutable_release();
      release.set_key(grant.key());
      release.set_owner(grant.owner());
      release.set_hold_id(grant.hold_id());
    } else {
      failure_ = absl::InternalError(absl::StrCat("a pair failed: ", event.ShortDebugString()));
    }
  }

  const MachineClock clock_;
  std::vector<Pair> pairs_;
  std::vector<size_t> pair_of_ = std::vector<size_t>(kPlaces);
  size_t busy_ = 0;
  BootTime end_;
  BootTime last_;
  PairsResult result_;
  absl::Status failure_;
  Loop loop_;
  Stream stream_;
};

}  // namespace

absl::StatusOr<PairsResult> StreamPairs(const std::string& address, int in_flight,
                                        absl::Duration span) {
  return PairsLoad(address, in_flight).Run(span);
}

absl::StatusOr<PairsResult> UnaryPairs(const std::string& address, absl::Duration span) {
  const MachineClock clock;
  const auto stub = v1::LockService::NewStub(Connect(address));
  PairsResult result;
  v1::AcquireRequest acquire;
  acquire.set_key("bench:unary");
  const BootTime begin = clock.Now();
  BootTime now = begin;
  while (now < begin + span) {
    const BootTime sent = clock.Now();
    grpc::ClientContext acquire_context;
    acquire_context.set_wait_for_ready(true);
    v1::AcquireResponse granted;
    grpc::Status status = stub->Acquire(&acquire_context, acquire, &granted);
    v1::ReleaseRequest release;
    release.set_key(granted.grant().key());
    release.set_owner(granted.grant().owner());
    release.set_hold_id(granted.grant().hold_id());
    grpc::ClientContext release_context;
    v1::ReleaseResponse released;
    if (status.ok()) status = stub->Release(&release_context, release, &released);
    if (!status.ok()) return absl::InternalError(status.error_message());
    now = clock.Now();
    result.micros.push_back(Micros(now - sent));
  }
  result.count = static_cast<double>(result.micros.size());
  result.per_second = result.count / absl::ToDoubleSeconds(now - begin);
  return result;
}

absl::StatusOr<std::vector<double>> PingMicros(const std::string& address, absl::Duration span) {
  const MachineClock clock;
  std::vector<double> micros;
  BootTime sent;
  BootTime end;
  bool done = false;
  Loop loop;
  std::optional<Stream> stream;
  stream.emplace(&loop, Connect(address), [&](const v1::SessionEvent& event) {
    if (!event.has_pong()) return;
    const BootTime now = clock.Now();
    micros.push_back(Micros(now - sent));
    done = now >= end;
    if (done) return;
    stream->Add().mutable_ping();
    sent = now;
  });
  absl::Status status = loop.RunUntil([&] { return stream->opened(); });
  if (!status.ok()) return status;
  sent = clock.Now();
  end = sent + span;
  stream->Add().mutable_ping();
  stream->Flush();
  status = loop.RunUntil([&] { return done; });
  if (!status.ok()) return status;
  return micros;
}

}  // namespace holdfast::bench
