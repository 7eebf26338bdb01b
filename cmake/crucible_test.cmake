# crucible_test(NAME SOURCES a_test.cc... LIBS... LABELS unit|git|e2e|gpu|slurm|browser|stress
#               [TIMEOUT seconds] [SERIAL] [THREADS])
# ./dev test runs two programs at a time; SERIAL: alone, because it decides by times or fills the machine.
# One test program a topic; CTest runs it whole, and its failing case's output is printed.
# THREADS: it, or a program that it runs, has threads of its own, so the thread sanitizer judges it.
# Configuring fails on a *_test.cc under tests/ that no target lists (see crucible_check_listed).
function(crucible_test name)
  cmake_parse_arguments(ARG "SERIAL;THREADS" "TIMEOUT" "SOURCES;LIBS;LABELS;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(CRUCIBLE_SANITIZE)  # code that computes takes several times as long
    math(EXPR ARG_TIMEOUT "6 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_THREADS)
    list(APPEND ARG_LABELS threads)
    set_property(GLOBAL APPEND PROPERTY CRUCIBLE_THREADED_TESTS ${name})
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE crucible_options crucible_base ${ARG_LIBS}
                        crucible_gtest_main)
  crucible_reuse_precompiled(${name} base_test)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    CRUCIBLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CRUCIBLE_BIN_DIR="${CMAKE_BINARY_DIR}/bin"
    CRUCIBLE_LIB_DIR="${CMAKE_BINARY_DIR}/lib")
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  foreach(source IN LISTS ARG_SOURCES)
    get_filename_component(path ${source} ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY CRUCIBLE_TEST_SOURCES ${path})
  endforeach()
endfunction()

function(crucible_check_listed)
  get_property(listed GLOBAL PROPERTY CRUCIBLE_TEST_SOURCES)
  file(GLOB_RECURSE found ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  foreach(path IN LISTS found)
    if(NOT path IN_LIST listed)
      message(FATAL_ERROR "configure tests: ${path} is in no crucible_test(); "
                          "a test that never runs proves nothing, so list it")
    endif()
  endforeach()
endfunction()
