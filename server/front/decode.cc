// SPDX-License-Identifier: Apache-2.0
#include "server/front/decode.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/base/names.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

bool ParseFrom(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::ByteBuffer copy = bytes;  // shares the slices; the reader wants one of its own
  grpc::ProtoBufferReader reader(&copy);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

// False where the bytes are no message of any kind.
bool ReadFields(const grpc::ByteBuffer& bytes, UnknownFieldSet& fields) {
  grpc::ByteBuffer copy = bytes;
  grpc::ProtoBufferReader reader(&copy);
  return reader.status().ok() && fields.ParseFromZeroCopyStream(&reader);
}

// Messages of ours nest three deep; others end here.
constexpr int kMaxDepth = 8;

// The name of the first string field, in `fields` or below, that is not UTF-8.
std::optional<std::string> FieldOfBadText(const UnknownFieldSet& fields, const Descriptor& type,
                                          int depth) {
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* field = type.FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING && !IsUtf8(value.length_delimited())) {
      return field->name();
    }
    UnknownFieldSet inner;
    if (field->type() == FieldDescriptor::TYPE_MESSAGE && depth < kMaxDepth &&
        inner.ParseFromString(value.length_delimited())) {
      std::optional<std::string> name = FieldOfBadText(inner, *field->message_type(), depth + 1);
      if (name.has_value()) return name;
    }
  }
  return std::nullopt;
}

absl::Status WhyNotParsed(const UnknownFieldSet* fields, const Descriptor& type) {
  if (fields != nullptr) {
    const std::optional<std::string> name = FieldOfBadText(*fields, type, 0);
    if (name.has_value()) {
      return Fail(Reason::kInvalidField, *name, absl::StrCat(*name, " must be valid UTF-8"));
    }
  }
  return Fail(Reason::kInvalidField, "", absl::StrCat("not a valid ", type.name()));
}

BadCommand ExplainCommand(const std::string& bytes) {
  BadCommand bad;
  UnknownFieldSet fields;
  const bool readable = fields.ParseFromString(bytes);
  for (int i = 0; readable && i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    if (value.number() == v1::SessionCommand::kRequestIdFieldNumber &&
        value.type() == UnknownField::TYPE_VARINT) {
      bad.request_id = value.varint();
    }
  }
  bad.status = WhyNotParsed(readable ? &fields : nullptr, *v1::SessionCommand::descriptor());
  return bad;
}

}  // namespace

absl::Status Decode(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  if (ParseFrom(bytes, message)) return absl::OkStatus();
  UnknownFieldSet fields;
  const bool readable = ReadFields(bytes, fields);
  return WhyNotParsed(readable ? &fields : nullptr, *message.GetDescriptor());
}

absl::Status DecodeSession(const grpc::ByteBuffer& bytes, v1::SessionRequest& message,
                           std::vector<BadCommand>& bad) {
  if (ParseFrom(bytes, message)) return absl::OkStatus();
  message.Clear();
  UnknownFieldSet fields;
  if (!ReadFields(bytes, fields)) return WhyNotParsed(nullptr, *message.GetDescriptor());
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    if (value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    const std::string& part = value.length_delimited();
    if (value.number() == v1::SessionRequest::kCommandsFieldNumber) {
      if (!message.add_commands()->ParseFromString(part)) {
        message.mutable_commands()->RemoveLast();
        bad.push_back(ExplainCommand(part));
      }
    } else if (value.number() == v1::SessionRequest::kOpenFieldNumber &&
               !message.mutable_open()->ParseFromString(part)) {
      return WhyNotParsed(&fields, *message.GetDescriptor());
    }
  }
  return absl::OkStatus();
}

grpc::ByteBuffer Encode(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes;
  bool own_buffer = false;
  // Cannot fail: it writes to memory, and our messages have no required fields.
  (void)grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::Message>(message, &bytes,
                                                                                   &own_buffer);
  return bytes;
}

}  // namespace holdfast::server
