// SPDX-License-Identifier: Apache-2.0
//
// What can be listed.
#include <string>
#include <utility>
#include <vector>

#include "holdfast/v1/admin.pb.h"
#include "holdfast/v1/lock.pb.h"
#include "server/front/convert.h"
#include "server/front/decode.h"
#include "server/front/paged_call.h"

namespace holdfast::server {
namespace {

// A Response of items, as many as fit: `add` appends one and returns its message.
template <typename Response, typename Item, typename Add>
std::optional<grpc::ByteBuffer> Fill(const std::vector<Item>& items, size_t& written, Add add) {
  if (written == items.size()) return std::nullopt;
  Response response;
  for (size_t bytes = 0; written < items.size() && bytes < kMaxAnswerBytes; ++written) {
    auto* const message = add(response);
    ToMessage(items[written], *message);
    bytes += message->ByteSizeLong();
  }
  return Encode(response);
}

class KeyListing final : public Listing {
 public:
  explicit KeyListing(v1::ListRequest request) : request_(std::move(request)) {}

  engine::Command Ask(engine::CommandHead head) override {
    return engine::List{std::move(head), request_.namespace_(), request_.prefix(),
                        page_.next_cursor};
  }
  bool Take(Result& result) override {
    auto* const page = std::get_if<engine::ListAnswer>(&result);
    if (page == nullptr) return false;
    page_ = std::move(*page);
    written_ = 0;
    return true;
  }
  std::optional<grpc::ByteBuffer> NextMessage() override {
    return Fill<v1::ListResponse>(page_.keys, written_, [](auto& to) { return to.add_keys(); });
  }
  bool complete() const override { return page_.next_cursor.empty(); }

 private:
  const v1::ListRequest request_;
  engine::ListAnswer page_;
  size_t written_ = 0;
};

class SessionListing final : public Listing {
 public:
  engine::Command Ask(engine::CommandHead head) override {
    return engine::ListSessions{std::move(head), page_.next};
  }
  bool Take(Result& result) override {
    auto* const page = std::get_if<engine::SessionsAnswer>(&result);
    if (page == nullptr) return false;
    page_ = std::move(*page);
    written_ = 0;
    return true;
  }
  std::optional<grpc::ByteBuffer> NextMessage() override {
    return Fill<v1::ListSessionsResponse>(page_.sessions, written_,
                                          [](auto& to) { return to.add_sessions(); });
  }
  bool complete() const override { return page_.next == 0; }

 private:
  engine::SessionsAnswer page_;
  size_t written_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listing>> ListKeys(const Front& front,
                                                  const grpc::ByteBuffer& request) {
  v1::ListRequest message;
  if (absl::Status status = Decode(request, message); !status.ok()) return status;
  if (message.namespace_().empty()) message.set_namespace_(front.default_namespace);
  return std::make_unique<KeyListing>(std::move(message));
}

absl::StatusOr<std::unique_ptr<Listing>> ListSessions(const grpc::ByteBuffer& request) {
  v1::ListSessionsRequest message;
  if (absl::Status status = Decode(request, message); !status.ok()) return status;
  return std::make_unique<SessionListing>();
}

}  // namespace holdfast::server
