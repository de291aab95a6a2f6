# SPDX-License-Identifier: Apache-2.0
#
# Compiler options. `holdfast_options` is linked by every target of ours and not by generated code.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_COLOR_DIAGNOSTICS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# The cache works across checkouts (paths below the source tree count as relative) and with
# precompiled headers (which need the sloppiness).
find_program(HOLDFAST_CCACHE ccache)
if(HOLDFAST_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${HOLDFAST_CCACHE})
endif()
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

# hiredis asks its users for it; precompiled headers need it to be the same everywhere.
add_compile_definitions(_FILE_OFFSET_BITS=64)

if(HOLDFAST_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

add_library(holdfast_options INTERFACE)
target_include_directories(holdfast_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(holdfast_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion
                       $<$<BOOL:${HOLDFAST_WERROR}>:-Werror>)
