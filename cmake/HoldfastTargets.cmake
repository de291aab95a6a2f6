# SPDX-License-Identifier: Apache-2.0
#
# The functions that define our targets.

# holdfast_library(NAME [RECURSE] [EXCLUDE file...] [DEPS target...])
#
# A static library of the calling folder's *.cc files (tests excepted; of its subfolders too with
# RECURSE), or an interface library while there are none.
function(holdfast_library name)
  cmake_parse_arguments(ARG "RECURSE" "" "EXCLUDE;DEPS" ${ARGN})
  set(glob GLOB)
  if(ARG_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS *.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(file IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()

  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE holdfast_options)
    _holdfast_precompile(${name} ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# holdfast_program(NAME SOURCE file [DEPS target...])
#
# build/bin/NAME, once its source exists.
function(holdfast_program name)
  cmake_parse_arguments(ARG "" "SOURCE" "DEPS" ${ARGN})
  file(GLOB source CONFIGURE_DEPENDS ${ARG_SOURCE})
  if(NOT source)
    return()
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} holdfast_options)
  _holdfast_precompile(${name} ${ARG_DEPS})
  install(TARGETS ${name})
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_PROGRAMS ${name})
endfunction()

# holdfast_test(NAME LABEL label SOURCES file... [DEPS target...] [TIMEOUT seconds] [SERIAL])
#
# A googletest program build/bin/tests/NAME, and a ctest of that name. Nothing happens without sources, so
# that a glob may be empty. SERIAL tests measure time and run alone. The programs under test are found
# in the folder that the environment variable HOLDFAST_BIN names.
function(holdfast_test name)
  cmake_parse_arguments(ARG "SERIAL" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} holdfast_options GTest::gmock GTest::gtest_main)
  _holdfast_precompile(${name} ${ARG_DEPS})
  get_target_property(reused ${name} PRECOMPILE_HEADERS_REUSE_FROM)
  if(NOT reused)
    _holdfast_precompile_gtest(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  holdfast_test_properties(${name} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# holdfast_test_properties(NAME LABEL label TIMEOUT seconds [ENVIRONMENT name=value...])
#
# What every ctest has, however it is run.
function(holdfast_test_properties name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "ENVIRONMENT" ${ARGN})
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABEL}"
    TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "HOLDFAST_ROOT=${CMAKE_SOURCE_DIR};HOLDFAST_BIN=${CMAKE_BINARY_DIR}/bin;${ARG_ENVIRONMENT}")
endfunction()

# holdfast_bench(NAME SOURCES file... [DEPS target...])
#
# build/bin/bench/NAME; `make bench` runs them all.
function(holdfast_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/bench)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} holdfast_options)
  _holdfast_precompile(${name} ${ARG_DEPS})
endfunction()

# Targets that reach gRPC through one of ours share the precompiled headers of holdfast_proto.
function(_holdfast_precompile name)
  get_target_property(proto_type holdfast_proto TYPE)
  if(proto_type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "^holdfast_(proto|server|client|cli)$")
      target_precompile_headers(${name} REUSE_FROM holdfast_proto)
      return()
    endif()
  endforeach()
endfunction()

# Tests that do not reach gRPC share googletest's headers, which are most of such a test's compile.
function(_holdfast_precompile_gtest name)
  if(NOT TARGET holdfast_gtest_headers)
    set(source ${CMAKE_BINARY_DIR}/generated/gtest_headers.cc)
    if(NOT EXISTS ${source})
      file(WRITE ${source} "")
    endif()
    add_library(holdfast_gtest_headers OBJECT ${source})
    target_link_libraries(holdfast_gtest_headers PRIVATE holdfast_options GTest::gmock)
    target_precompile_headers(holdfast_gtest_headers PRIVATE
      <memory> <string> <vector> <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${name} REUSE_FROM holdfast_gtest_headers)
endfunction()
