# SPDX-License-Identifier: Apache-2.0
#
# Outside libraries. Protobuf comes before gRPC, in module mode: gRPC's own configuration needs its
# targets and finds no package file for it on Debian 12.

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp) # the name since 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# hiredis with TLS is the system's on Debian 13, and what scripts/build-hiredis made on Debian 12.
find_package(PkgConfig REQUIRED)
set(ENV{PKG_CONFIG_PATH} "${CMAKE_SOURCE_DIR}/.deps/hiredis/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=1.2.0)
pkg_check_modules(hiredis_ssl REQUIRED IMPORTED_TARGET hiredis_ssl>=1.2.0)
pkg_check_modules(libuv REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(lmdb REQUIRED IMPORTED_TARGET lmdb)
add_library(hiredis INTERFACE)
target_link_libraries(hiredis INTERFACE PkgConfig::hiredis_ssl PkgConfig::hiredis OpenSSL::SSL)

if(HOLDFAST_TESTS)
  find_package(GTest CONFIG REQUIRED)
  # The system's Python has Debian's grpc module; another one earlier in PATH may not.
  find_program(HOLDFAST_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(HOLDFAST_PYTHON python3)
endif()
