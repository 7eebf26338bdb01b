# -O2 for the programs (kernels choose their own): half the build time of -O3.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Warnings as errors at top level only: a project that embeds crucible keeps its own rules.
add_library(crucible_options INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
  # g++-12 reports moved-from tl::expected values as maybe-uninitialized: a false alarm.
  target_compile_options(crucible_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Werror -Wno-missing-field-initializers
                              -Wno-maybe-uninitialized>)
endif()
target_include_directories(crucible_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(crucible_options INTERFACE cxx_std_20)

set(CRUCIBLE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(CRUCIBLE_SANITIZE)
  add_compile_options(-fsanitize=${CRUCIBLE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CRUCIBLE_SANITIZE})
endif()

# crucible_library(NAME SOURCES... LIBS...): a static library that includes from the root.
function(crucible_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC crucible_options ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
endfunction()

# crucible_program(NAME SOURCES... LIBS...): a program in build/bin.
function(crucible_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE crucible_options ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY CRUCIBLE_PROGRAMS ${name})
endfunction()
