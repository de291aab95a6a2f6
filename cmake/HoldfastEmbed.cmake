# SPDX-License-Identifier: Apache-2.0
#
# embed_files(TARGET HEADER path NAMESPACE namespace FILES file...)
#
# Makes files string constants of a library: `acquire_all.lua` becomes
# `extern const std::string_view kAcquireAll` in the named namespace. The header is generated at build
# time and included by the path that HEADER says.
#
# The same file, run as a script at build time, does the work.

if(CMAKE_SCRIPT_MODE_FILE)
  set(license "// SPDX-License-Identifier: Apache-2.0\n// Generated from the files that it names.\n")
  set(header_text "${license}#pragma once\n\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n")
  set(source_text "${license}#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
  foreach(file IN LISTS FILES)
    get_filename_component(stem ${file} NAME_WE)
    set(constant k)
    string(REPLACE "_" ";" words ${stem})
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND constant "${first}${rest}")
    endforeach()
    get_filename_component(base ${file} NAME)
    file(READ ${file} text)
    string(APPEND header_text "extern const std::string_view ${constant};  // ${base}\n")
    string(APPEND source_text "const std::string_view ${constant} = R\"embedded(${text})embedded\";\n\n")
  endforeach()
  file(WRITE ${OUT}/${HEADER} "${header_text}\n}  // namespace ${NAMESPACE}\n")
  string(REGEX REPLACE "\\.h$" ".cc" SOURCE ${HEADER})
  file(WRITE ${OUT}/${SOURCE} "${source_text}}  // namespace ${NAMESPACE}\n")
  return()
endif()

set(_holdfast_embed_script ${CMAKE_CURRENT_LIST_FILE})

function(embed_files target)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "FILES" ${ARGN})
  get_target_property(type ${target} TYPE)
  if(NOT ARG_FILES OR type STREQUAL INTERFACE_LIBRARY)
    return()
  endif()
  set(out ${CMAKE_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.h$" ".cc" source ${ARG_HEADER})
  list(SORT ARG_FILES)
  add_custom_command(
    OUTPUT ${out}/${ARG_HEADER} ${out}/${source}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DHEADER=${ARG_HEADER} -DNAMESPACE=${ARG_NAMESPACE}
            "-DFILES=${ARG_FILES}" -P ${_holdfast_embed_script}
    DEPENDS ${ARG_FILES} ${_holdfast_embed_script}
    VERBATIM)
  target_sources(${target} PRIVATE ${out}/${ARG_HEADER} ${out}/${source})
endfunction()
