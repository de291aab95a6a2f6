// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/store_test.h"

namespace holdfast::testing {

void StoreTest::SetUp() {
  environment_ = GetParam().make();
  ASSERT_NE(environment_, nullptr) << "the store's environment does not come up";
  client_ = std::make_unique<StoreClient>(&loop_, environment_->MakeStore(&loop_));
  ASSERT_TRUE(client_->StartAndWait())
      << (client_->events().empty() ? "no event" : client_->events().back().detail);
}

void StoreTest::TearDown() {
  if (client_ == nullptr) return;
  EXPECT_EQ(client_->unexpected_replies(), 0u);
}

HoldRef StoreTest::Hold(const std::string& key, const std::string& owner,
                        const std::string& session) {
  HoldRef hold;
  hold.name = {"default", key};
  hold.owner = owner + "-of-sixteen-bytes";
  hold.hold_id = "hold-" + owner + "-" + session;
  hold.session = session;
  return hold;
}

AcquireOp StoreTest::Acquire(const HoldRef& hold) const {
  AcquireOp op;
  op.hold = hold;
  op.lease = absl::Seconds(20);
  return op;
}

ReleaseOp StoreTest::Release(const HoldRef& hold, ReleaseKind kind, const std::string& op_id) {
  ReleaseOp op;
  op.hold = hold;
  op.kind = kind;
  op.op_id = op_id;
  return op;
}

Granted StoreTest::AcquireWhenFree(const AcquireOp& op, absl::Duration limit) {
  Result last;
  uint64_t id = client_->Submit(op);
  const bool granted = loop_.RunUntil(
      [&] {
        if (!client_->Answered(id)) return false;
        last = client_->Wait(id);
        if (std::holds_alternative<Granted>(last)) return true;
        id = client_->Submit(op);
        return false;
      },
      limit);
  EXPECT_TRUE(granted) << "the last answer was of kind " << last.index();
  return granted ? std::get<Granted>(last) : Granted();
}

}  // namespace holdfast::testing
