# SPDX-License-Identifier: Apache-2.0

# holdfast_proto_library(NAME PROTOS file...)
#
# C++ messages and gRPC stubs of .proto files that lie below the calling folder, which is also the root
# of their imports. Headers are included by that path: "holdfast/v1/lock.pb.h". Our warnings do not
# apply to generated code, neither here nor where its headers are included.
function(holdfast_proto_library name)
  cmake_parse_arguments(ARG "" "" "PROTOS" ${ARGN})
  if(NOT ARG_PROTOS)
    add_library(${name} INTERFACE)
    return()
  endif()

  set(out ${CMAKE_BINARY_DIR}/generated/proto)
  file(MAKE_DIRECTORY ${out})
  set(sources)
  foreach(proto IN LISTS ARG_PROTOS)
    file(RELATIVE_PATH path ${CMAKE_CURRENT_SOURCE_DIR} ${proto})
    string(REGEX REPLACE "\\.proto$" "" stem ${path})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${generated}
      COMMAND protobuf::protoc -I ${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${proto}
      DEPENDS ${ARG_PROTOS}
      VERBATIM)
    list(APPEND sources ${generated})
  endforeach()

  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC gRPC::grpc++ protobuf::libprotobuf)
  # -w silences everything; -Wpedantic is there because GCC's precompiled headers depend on it, and our
  # own code shares these.
  target_compile_options(${name} PRIVATE -Wpedantic -w)
  target_precompile_headers(${name} PRIVATE
    <chrono> <functional> <map> <memory> <mutex> <optional> <string> <string_view> <unordered_map>
    <variant> <vector> <google/protobuf/duration.pb.h> <google/protobuf/message.h> <grpcpp/grpcpp.h>)
endfunction()
