// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/figures.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/crowd.h"
#include "tests/bench/handoff.h"
#include "tests/bench/handoff_floor.h"
#include "tests/bench/idle_sessions.h"
#include "tests/bench/pairs.h"

namespace holdfast::bench {
namespace {

constexpr double kPairsRatio = 0.25;
constexpr double kHandoffRatio = 1.0;
constexpr double kIdleSessionKb = 40;
constexpr size_t kCrowd = 16;
constexpr double kCrowdRatio = 3;
constexpr double kTwoDaemonsRatio = 5;
constexpr double kFairness = 1.1;
// Of a handoff's floor: one for the script, and as much three times again for the threads between.
constexpr double kRoundTripsInHandoff = 4;

constexpr char kMicros[] = "us";

}  // namespace

Figures::Figures(const Servers& servers, absl::Duration span, int idle_sessions, std::string only,
                 Report* report)
    : servers_(servers),
      span_(span),
      idle_sessions_(idle_sessions),
      only_(std::move(only)),
      report_(report) {
  const DaemonProcess& daemon = servers.on_redis();
  AddPairs("pairs_64", "pairs/s, one stream, 64 in flight", 64, servers.redis(), daemon,
           daemon.unix_address(), Figure::Wanted::kRatioAtLeast);
  AddHandoff();
  AddCrowds();
  AddIdleSessions();
  AddPairs("pairs_512", "pairs/s, 512 in flight", 512, servers.redis(), daemon,
           daemon.unix_address(), Figure::Wanted::kNothing);
  AddPairs("pairs_64_tcp", "pairs/s, 64 in flight, all over TCP", 64, servers.redis_tcp(),
           servers.on_redis_tcp(), servers.on_redis_tcp().tcp_address(), Figure::Wanted::kNothing);
  AddEmbeddedPairs(64);
  AddEmbeddedPairs(512);
  AddAlone("alone", "one pair alone, stream, p50", daemon.unix_address(), false);
  AddAlone("alone_unary", "one pair alone, unary, p50", daemon.unix_address(), true);
  AddAlone("alone_embedded", "one pair alone, stream, embedded, p50",
           servers.embedded().unix_address(), false);
}

absl::Status Figures::Round() {
  for (const auto& step : steps_) {
    absl::Status status = step();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Figures::AddPairs(const char* id, const char* name, int in_flight, const RedisPlace& place,
                       const DaemonProcess& daemon, const std::string& address,
                       Figure::Wanted wanted) {
  if (Leaves(id)) return;
  Figure& pairs = report_->Add({.id = id,
                                .name = name,
                                .unit = "/s",
                                .floor_name = "pairs/s of two plain scripts, one connection",
                                .wanted = wanted,
                                .bound = kPairsRatio});
  Figure& cpu = report_->Add({.id = absl::StrCat(id, "_daemon_cpu"),
                              .name = "  the daemon's CPU for 100,000 of them",
                              .unit = "s"});
  steps_.emplace_back([this, in_flight, place, &daemon, address, &pairs, &cpu]() -> absl::Status {
    const absl::StatusOr<double> floor = RedisPairsPerSecond(place, in_flight, span_);
    if (!floor.ok()) return floor.status();
    const double cpu_before = daemon.CpuSeconds();
    const absl::StatusOr<PairsResult> result = StreamPairs(address, in_flight, span_);
    if (!result.ok()) return result.status();
    pairs.floors.push_back(*floor);
    pairs.values.push_back(result->per_second);
    cpu.values.push_back((daemon.CpuSeconds() - cpu_before) / result->count * 100'000);
    return absl::OkStatus();
  });
}

void Figures::AddEmbeddedPairs(int in_flight) {
  const std::string id = absl::StrCat("pairs_", in_flight, "_embedded");
  if (Leaves(id)) return;
  Figure& pairs =
      report_->Add({.id = id,
                    .name = absl::StrCat("pairs/s, ", in_flight, " in flight, embedded"),
                    .unit = "/s"});
  steps_.emplace_back([this, in_flight, &pairs]() -> absl::Status {
    const absl::StatusOr<PairsResult> result =
        StreamPairs(servers_.embedded().unix_address(), in_flight, span_);
    if (!result.ok()) return result.status();
    pairs.values.push_back(result->per_second);
    return absl::OkStatus();
  });
}

void Figures::AddHandoff() {
  if (Leaves("handoff")) return;
  const char* const floor_name =
      "four round trips of the handoff's script and one ping of a stream";
  Figure& half = report_->Add({.id = "handoff_p50",
                               .name = "handoff between two clients, p50",
                               .unit = kMicros,
                               .floor_name = floor_name,
                               .wanted = Figure::Wanted::kRatioAtMost,
                               .bound = kHandoffRatio});
  Figure& tail = report_->Add(
      {.id = "handoff_p99", .name = "handoff between two clients, p99", .unit = kMicros});
  Figure& redis = report_->Add({.id = "redis_round_trip",
                                .name = "  the handoff's script, round trip to Redis, p50",
                                .unit = kMicros});
  Figure& ping = report_->Add(
      {.id = "ping", .name = "  a ping of a stream of the daemon, p50", .unit = kMicros});
  steps_.emplace_back([this, &half, &tail, &redis, &ping]() -> absl::Status {
    const std::string& address = servers_.on_redis().unix_address();
    const absl::StatusOr<std::vector<double>> trips =
        RedisHandoffMicros(servers_.redis(), span_ / 2);
    if (!trips.ok()) return trips.status();
    const absl::StatusOr<std::vector<double>> pings = PingMicros(address, span_ / 2);
    if (!pings.ok()) return pings.status();
    const absl::StatusOr<std::vector<double>> gaps = HandoffMicros(address, span_);
    if (!gaps.ok()) return gaps.status();
    redis.values.push_back(Median(*trips));
    ping.values.push_back(Median(*pings));
    half.values.push_back(Median(*gaps));
    half.floors.push_back(kRoundTripsInHandoff * Median(*trips) + Median(*pings));
    tail.values.push_back(Percentile(*gaps, 0.99));
    return absl::OkStatus();
  });
}

void Figures::AddCrowds() {
  const std::string& one = servers_.on_redis().unix_address();
  const std::string& other = servers_.on_redis_tcp().unix_address();
  AddCrowd("crowd_one", "16 clients of one daemon", {one}, v1::ORDERING_BARGING, kCrowdRatio);
  AddCrowd("crowd_fifo_one", "16 of one, FIFO", {one}, v1::ORDERING_FIFO, kCrowdRatio);
  AddCrowd("crowd_two", "16 of two daemons", {one, other}, v1::ORDERING_BARGING, kTwoDaemonsRatio);
  AddCrowd("crowd_fifo_two", "16 of two, FIFO", {one, other}, v1::ORDERING_FIFO, kTwoDaemonsRatio);
}

void Figures::AddCrowd(const std::string& id, const std::string& name,
                       std::vector<std::string> addresses, v1::Ordering ordering, double bound) {
  if (Leaves(id)) return;
  const bool fifo = ordering == v1::ORDERING_FIFO;
  Figure& half = report_->Add({.id = id + "_p50",
                               .name = name + ": handoff, p50",
                               .unit = kMicros,
                               .floor_name = "the handoff's script and a ping of a stream",
                               .wanted = Figure::Wanted::kRatioAtMost,
                               .bound = bound});
  Figure& tail = report_->Add({.id = id + "_p99", .name = "  p99", .unit = kMicros});
  Figure& fairness =
      report_->Add({.id = id + "_fairness",
                    .name = "  most grants of a client / fewest",
                    .unit = "x",
                    .wanted = fifo ? Figure::Wanted::kValueAtMost : Figure::Wanted::kNothing,
                    .bound = kFairness});
  steps_.emplace_back([this, addresses = std::move(addresses), ordering, &half, &tail,
                       &fairness]() -> absl::Status {
    const absl::StatusOr<std::vector<double>> trips =
        RedisHandoffMicros(servers_.redis(), span_ / 4);
    if (!trips.ok()) return trips.status();
    const absl::StatusOr<std::vector<double>> pings = PingMicros(addresses[0], span_ / 4);
    if (!pings.ok()) return pings.status();
    const absl::StatusOr<CrowdResult> crowd = Crowd(addresses, kCrowd, ordering, span_);
    if (!crowd.ok()) return crowd.status();
    half.values.push_back(Median(crowd->gap_micros));
    half.floors.push_back(Median(*trips) + Median(*pings));
    tail.values.push_back(Percentile(crowd->gap_micros, 0.99));
    fairness.values.push_back(crowd->most_grants / std::max(crowd->fewest_grants, 1.0));
    return absl::OkStatus();
  });
}

void Figures::AddIdleSessions() {
  if (Leaves("idle_session_kb")) return;
  Figure& memory = report_->Add({.id = "idle_session_kb",
                                 .name = "memory of an idle session",
                                 .unit = "KB",
                                 .wanted = Figure::Wanted::kValueAtMost,
                                 .bound = kIdleSessionKb});
  steps_.emplace_back([this, &memory]() -> absl::Status {
    const absl::StatusOr<std::unique_ptr<DaemonProcess>> fresh = servers_.FreshEmbedded();
    if (!fresh.ok()) return fresh.status();
    const absl::StatusOr<double> kb = KbPerIdleSession(**fresh, idle_sessions_);
    if (!kb.ok()) return kb.status();
    memory.values.push_back(*kb);
    return absl::OkStatus();
  });
}

void Figures::AddAlone(const char* id, const char* name, const std::string& address, bool unary) {
  if (Leaves(id)) return;
  Figure& alone = report_->Add({.id = id, .name = name, .unit = kMicros});
  steps_.emplace_back([this, address, unary, &alone]() -> absl::Status {
    const absl::StatusOr<PairsResult> result =
        unary ? UnaryPairs(address, span_ / 2) : StreamPairs(address, 1, span_ / 2);
    if (!result.ok()) return result.status();
    alone.values.push_back(Median(result->micros));
    return absl::OkStatus();
  });
}

}  // namespace holdfast::bench
