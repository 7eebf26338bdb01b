# -O1: the programs wait for compilers and devices, and build in two thirds of -O2's time. Kernels
# choose their own flags, and what computes much asks for more with crucible_optimise().
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
# Of the sanitizer presets: assertions stay, a report has its lines, and what is not optimised builds
# in half the time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -g1")
function(crucible_optimise)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>
                           $<$<CONFIG:RelWithDebInfo>:-O1>)
    # g++-12 crashes on a header that was precompiled with another -O.
    set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# Warnings as errors at top level only: a project that embeds crucible keeps its own rules.
add_library(crucible_options INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  # False alarms of g++-12: moved-from tl::expected values as maybe-uninitialized, and the small
  # buffer of a std::string, seen through a precompiled header, as too short.
  target_compile_options(crucible_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Werror -Wno-missing-field-initializers
                              -Wno-maybe-uninitialized -Wno-array-bounds>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow -Wno-stringop-overread>)
endif()
target_include_directories(crucible_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(crucible_options INTERFACE cxx_std_20)

set(CRUCIBLE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(CRUCIBLE_SANITIZE)
  # But the check of virtual tables: it writes to a pipe to learn whether memory is there, and where
  # code under test runs a write to any descriptor but the log ends the process
  # (checks/harness/seclusion.h).
  add_compile_options(-fsanitize=${CRUCIBLE_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CRUCIBLE_SANITIZE})
endif()

# Half of a build is the same few headers, so they are compiled once for all libraries, and once
# more, with GoogleTest, for all tests. With a compiler cache each file's own result is worth more,
# because a cache can hardly tell what a precompiled header was made of.
set(CRUCIBLE_PRECOMPILE ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
  set(CRUCIBLE_PRECOMPILE OFF)
endif()
set(crucible_common_headers <algorithm> <cstdint> <filesystem> <functional> <map> <memory>
    <optional> <set> <string> <vector> <fmt/format.h> <fmt/ranges.h>
    ${PROJECT_SOURCE_DIR}/base/json.h ${PROJECT_SOURCE_DIR}/base/result.h)

# crucible_precompile(TARGET [HEADER...]): the common headers, and these.
function(crucible_precompile name)
  if(CRUCIBLE_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${crucible_common_headers} ${ARGN})
  endif()
endfunction()

# crucible_reuse_precompiled(TARGET FROM): those of FROM, which is compiled with the same options.
function(crucible_reuse_precompiled name from)
  if(CRUCIBLE_PRECOMPILE AND NOT name STREQUAL from)
    target_precompile_headers(${name} REUSE_FROM ${from})
  endif()
endfunction()

# crucible_unite(TARGET n): compiles the sources n at a time. Most of a file is the same templates
# (json, strings, command lines), which are then instantiated once for n files. A file whose private
# names are also a neighbour's is left out with SKIP_UNITY_BUILD_INCLUSION.
function(crucible_unite name count)
  if(CRUCIBLE_PRECOMPILE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()

# crucible_library(NAME SOURCES... LIBS...): a static library that includes from the root.
function(crucible_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC crucible_options ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
  crucible_reuse_precompiled(${name} crucible_json)
  crucible_unite(${name} 6)
endfunction()

# crucible_program(NAME SOURCES... LIBS...): a program in build/bin.
function(crucible_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE crucible_options ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY CRUCIBLE_PROGRAMS ${name})
endfunction()
