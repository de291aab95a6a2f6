// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a unary call's answer.
#pragma once

#include "server/front/convert.h"
#include "server/front/decode.h"
#include "server/front/unary_call.h"

namespace holdfast::server {

// The answer `Message` of a result that one of ToMessage's overloads knows.
template <typename Message, typename... Results>
grpc::ByteBuffer EncodeResult(const UnaryCall::Result& result) {
  Message message;
  const auto fill = [&](const auto* part) {
    if (part != nullptr) ToMessage(*part, message);
  };
  (fill(std::get_if<Results>(&result)), ...);
  return Encode(message);
}

}  // namespace holdfast::server
