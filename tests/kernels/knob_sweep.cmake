# knob_sweep.cmake: compiles the CPU kernel with configurations far from the plain one and runs
# eigh_cpu_test on each. Every class of one build has different knobs, so four builds try twelve
# configurations, and between them every value of every knob that has few.
#
# cmake -DSOURCE=kernels/eigh/cpu -DBINARY=scratch -DTEST=eigh_cpu_test -DCXX=g++ -P this

set(order kVector kPanelWidth kSymvHalf kSymvRows kSymvUnroll kTileRows kTileVectors kGemmKBlock
    kGemmPack kBackBlock kBackRows kLeafSize kLeafDelay kLeafPair
    kSecularShort kRowPad kBatchChunk)
#                V  P  H  R  U  TR TV KB  PK BB BR   LF LD LP SS RP BC
set(a_small      8  8  1  4  2  4  2  256 0  16 4096 64 1  0  1  0  1)
set(a_medium     8  16 1  4  2  6  2  128 1  32 64   16 1  1  0  16 2)
set(a_large      8  32 1  4  2  4  3  256 1  64 128  32 1  1  1  16 4)
set(b_small      4  4  0  8  1  8  1  32  1  8  8    4  0  1  0  8  2)
set(b_medium     4  64 1  2  4  2  4  256 0  64 32   32 0  0  1  32 8)
set(b_large      4  8  0  4  2  1  3  64  0  4  16   8  1  1  0  8  0)
set(c_small      1  2  1  4  1  2  3  64  0  4  32   16 1  1  1  32 4)
set(c_medium     1  1  1  1  4  8  1  32  0  16 8    4  0  0  0  0  1)
set(c_large      1  4  1  2  1  6  1  128 1  1  64   64 0  0  1  0  8)
set(d_small      8  32 1  1  4  6  1  512 1  32 128  32 0  0  1  16 8)
set(d_medium     8  4  0  2  2  1  4  64  1  1  128  64 1  1  0  8  4)
set(d_large      1  1  0  1  2  4  2  32  1  8  8    4  0  0  1  16 1)

file(MAKE_DIRECTORY ${BINARY})
if(SANITIZE)
  set(sanitize -fsanitize=${SANITIZE} -fno-sanitize-recover=all)
endif()
foreach(build a b c d)
  foreach(class small medium large)
    set(text "#pragma once\nnamespace eigh_cpu::${class} {\n")
    foreach(knob value IN ZIP_LISTS order ${build}_${class})
      string(APPEND text "inline constexpr int ${knob} = ${value};\n")
    endforeach()
    file(WRITE ${BINARY}/${build}/tuning/${class}.h "${text}}\n")
  endforeach()
  set(library ${BINARY}/${build}/libeigh_cpu.so)
  execute_process(
    COMMAND ${CXX} -std=c++20 -O1 -march=native -Wno-psabi -fPIC -shared ${sanitize}
            -I${BINARY}/${build} -o ${library} ${SOURCE}/eigh_cpu.cc ${SOURCE}/solve_small.cc
            ${SOURCE}/solve_medium.cc ${SOURCE}/solve_large.cc -pthread
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "compile configuration ${build}: exit ${result}; see the errors above")
  endif()
  set(ENV{EIGH_CPU_LIBRARY} ${library})
  set(ENV{EIGH_CPU_QUICK} 1)
  execute_process(COMMAND ${TEST} --gtest_brief=1 RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "configuration ${build} fails eigh_cpu_test: exit ${result}; "
                        "its knobs are in ${BINARY}/${build}/tuning")
  endif()
endforeach()
