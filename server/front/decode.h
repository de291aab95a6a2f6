// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a request to its message. gRPC's own parsing would answer INTERNAL without a
// word to what cannot be parsed; here the client learns which field is wrong.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "holdfast/v1/session.pb.h"

namespace holdfast::server {

// INVALID_ARGUMENT: "key must be valid UTF-8" with the field's name, or "not a valid
// AcquireRequest".
absl::Status Decode(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

// A command of a stream that could not be parsed.
struct BadCommand {
  uint64_t request_id = 0;  // 0 where it could not be read either
  absl::Status status;
};

// As Decode, but a command that is wrong is put aside, so that it costs its client one answer and
// not the session. `bad` gets what is left out of `message`.
absl::Status DecodeSession(const grpc::ByteBuffer& bytes, v1::SessionRequest& message,
                           std::vector<BadCommand>& bad);

// The bytes of an answer.
grpc::ByteBuffer Encode(const google::protobuf::Message& message);

}  // namespace holdfast::server
