// SPDX-License-Identifier: Apache-2.0
#include "server/front/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/v1/lock.pb.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

grpc::ByteBuffer Bytes(const std::string& text) {
  // Two slices, as a message that came in pieces.
  const grpc::Slice slices[] = {grpc::Slice(text.substr(0, text.size() / 2)),
                                grpc::Slice(text.substr(text.size() / 2))};
  return grpc::ByteBuffer(slices, 2);
}

// A field of type string, bytes or message, on the wire; below 128 bytes.
std::string Field(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + value;
}

TEST(Decode, ReadsWhatWasEncoded) {
  v1::AcquireRequest request;
  request.set_key("jobs/nightly");
  request.set_owner(std::string(200, 'o'));
  v1::AcquireRequest read;
  EXPECT_TRUE(Decode(Encode(request), read).ok());
  EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
}

TEST(Decode, NamesTheTextThatIsNoUtf8) {
  v1::AcquireRequest request;
  const absl::Status status = Decode(Bytes(Field(1, "ok") + Field(2, "bad\xff")), request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_EQ(FieldOf(status), "key");
  EXPECT_EQ(status.message(), "key must be valid UTF-8");
}

TEST(Decode, SaysWhichMessageItIsNot) {
  v1::AcquireRequest request;
  const absl::Status status = Decode(Bytes("\x12\x7f too short"), request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "not a valid AcquireRequest");
}

TEST(Decode, TakesAnEmptyMessageForOneWithoutFields) {
  v1::AcquireRequest request;
  EXPECT_TRUE(Decode(grpc::ByteBuffer(), request).ok() || request.ByteSizeLong() == 0);
}

TEST(DecodeSession, ABadCommandCostsNeitherTheOthersNorTheStream) {
  v1::SessionCommand good;
  good.set_request_id(7);
  good.mutable_acquire()->set_key("k");
  const std::string bad_acquire = Field(2, "\xc3\x28");
  const std::string bad = std::string{1 << 3, 9} + Field(2, bad_acquire);
  v1::SessionRequest request;
  std::vector<BadCommand> put_aside;
  const absl::Status status =
      DecodeSession(Bytes(Field(2, good.SerializeAsString()) + Field(2, bad) +
                          Field(2, good.SerializeAsString())),
                    request, put_aside);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(request.commands_size(), 2);
  ASSERT_EQ(put_aside.size(), 1u);
  EXPECT_EQ(put_aside[0].request_id, 9u);
  EXPECT_EQ(put_aside[0].status.message(), "key must be valid UTF-8");
}

TEST(DecodeSession, ABadOpenIsTheStreamsFault) {
  v1::SessionRequest request;
  std::vector<BadCommand> put_aside;
  const absl::Status status = DecodeSession(Bytes(Field(1, Field(3, "\xff"))), request, put_aside);
  EXPECT_EQ(FieldOf(status), "client_name");
}

TEST(DecodeSession, RubbishIsNoSession) {
  v1::SessionRequest request;
  std::vector<BadCommand> put_aside;
  EXPECT_EQ(DecodeSession(Bytes("\xff\xff\xff"), request, put_aside).message(),
            "not a valid SessionRequest");
}

}  // namespace
}  // namespace holdfast::server
