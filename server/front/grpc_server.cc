// SPDX-License-Identifier: Apache-2.0
#include "server/front/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <climits>
#include <mutex>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/front/listen_socket.h"
#include "server/front/lock_service.h"

namespace holdfast::server {
namespace {

// 4,096 commands with every field as long as it may be.
constexpr int kMaxReceiveBytes = 16 << 20;
// Clients keep idle connections alive at their own pace, down to this.
constexpr int kMinClientPingMs = 1000;
// Owner and group: whoever may open the socket may take locks.
constexpr mode_t kSocketUmask = 0117;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void SetArguments(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(kKeepaliveTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(kKeepaliveTimeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinClientPingMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, INT_MAX);
  // A second daemon on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Only reflection is served by threads that wait.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

class Serving final : public GrpcServer {
 public:
  explicit Serving(const Front& front)
      : lock_service_(MakeLockService(front)), admin_service_(MakeAdminService(front)) {}

  absl::Status Listen(const std::vector<std::string>& listen);

  const std::vector<std::string>& addresses() const override { return addresses_; }
  void SetServing(bool serving) override {
    server_->GetHealthCheckService()->SetServingStatus(kLockServiceName, serving);
  }
  void SetDraining() override { server_->GetHealthCheckService()->SetServingStatus(false); }
  void Shutdown(absl::Duration limit) override {
    server_->Shutdown(gpr_time_from_millis(Millis(limit), GPR_TIMESPAN));
    server_->Wait();
  }

 private:
  std::unique_ptr<grpc::Service> lock_service_;
  std::unique_ptr<grpc::Service> admin_service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

absl::Status Serving::Listen(const std::vector<std::string>& listen) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetArguments(builder);
  builder.RegisterService(lock_service_.get());
  builder.RegisterService(admin_service_.get());
  std::vector<int> ports(listen.size(), 0);
  for (size_t i = 0; i < listen.size(); ++i) {
    if (const std::optional<std::string> path = UnixPath(listen[i])) {
      absl::Status status = PrepareUnixSocket(*path);
      if (!status.ok()) return status;
    }
    builder.AddListeningPort(listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  {
    const mode_t before = umask(kSocketUmask);
    const auto restore = absl::MakeCleanup([before] { umask(before); });
    server_ = builder.BuildAndStart();
  }
  for (size_t i = 0; i < listen.size(); ++i) {
    if (server_ != nullptr && ports[i] > 0) {
      const bool chosen = !UnixPath(listen[i]).has_value();
      addresses_.push_back(
          chosen ? absl::StrCat(listen[i].substr(0, listen[i].rfind(':') + 1), ports[i])
                 : listen[i]);
    } else if (ports[i] <= 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", listen[i], ": ", WhyNotBound(listen[i])));
    }
  }
  if (server_ == nullptr) return absl::UnavailableError("cannot start the gRPC server");
  SetServing(false);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const std::vector<std::string>& listen, const Front& front) {
  auto serving = std::make_unique<Serving>(front);
  absl::Status status = serving->Listen(listen);
  if (!status.ok()) return status;
  return std::unique_ptr<GrpcServer>(std::move(serving));
}

}  // namespace holdfast::server
