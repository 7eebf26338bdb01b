// What a library is refused for before a line of it runs.
#include "checks/eigh/symbol_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "checks/eigh/code_scan.h"
#include "checks/eigh/elf_file.h"
#include "checks/target.h"

namespace crucible::eigh {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kExploits[] = CRUCIBLE_LIB_DIR "/exploits/";
constexpr char kPeer[] = CRUCIBLE_LIB_DIR "/libeigh_peer_lapack.so";
constexpr char kCpuKernel[] = CRUCIBLE_LIB_DIR "/libeigh_cpu.so";

fs::path Exploit(const std::string& name) {
  return fs::path(kExploits) / "eigh_cpu" / (name + ".so");
}

TEST(SymbolPolicy, AKernelThatDoesItsOwnWorkIsAdmitted) {
  for (const fs::path& library : {Exploit("honest"), fs::path(kCpuKernel)}) {
    const auto admitted = CheckSymbols(library, KernelKind::kCpu);
    EXPECT_TRUE(admitted) << admitted.error().text;
  }
}

TEST(SymbolPolicy, ACudaKernelThatDoesItsOwnWorkIsAdmitted) {
  for (const fs::path& library : {fs::path(kExploits) / "eigh_cuda/honest.so",
                                  fs::path(CRUCIBLE_LIB_DIR "/libcrucible_eigh.so")}) {
    if (!fs::exists(library)) continue;  // built without CUDA, or not built yet
    const auto admitted = CheckSymbols(library, KernelKind::kCuda);
    EXPECT_TRUE(admitted) << admitted.error().text;
  }
}

// A compiler that links C++'s runtime into every library would bring its files and system calls along.
TEST(SymbolPolicy, OurGpuLibraryTakesNothingOfTheCppRuntime) {
  const fs::path library = CRUCIBLE_LIB_DIR "/libcrucible_eigh.so";
  if (!fs::exists(library)) GTEST_SKIP() << "built without CUDA, or not built yet";
  const auto elf = ReadElfFile(library);
  ASSERT_TRUE(elf) << elf.error().text;
  EXPECT_THAT(elf->needed, Not(Contains(HasSubstr("libstdc++"))));
  for (const char* of_cpp : {"__cxa_guard_", "__gxx_personality", "_Unwind_", "_Zn", "_ZSt"})
    EXPECT_THAT(elf->imported, Not(Contains(StartsWith(of_cpp))));
}

TEST(SymbolPolicy, ALibraryThatLeavesTheWorkToAnotherIsRefusedByName) {
  for (const KernelKind kind : {KernelKind::kCpu, KernelKind::kCuda}) {
    const auto refused = CheckSymbols(kPeer, kind);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("admit libeigh_peer_lapack.so: it needs lib"));
  }
}

TEST(SymbolPolicy, WhatIsNotOnTheListIsNamedWithANextStep) {
  for (const auto& [name, what] :
       {std::pair("loads_code", "it calls dlsym;"),
        std::pair("reads_clock", "it calls clock_gettime;"),
        std::pair("reads_files", "it calls fclose, fopen;"),
        std::pair("opens_socket", "it calls socket;"),
        std::pair("starts_threads", "it calls pthread_create, pthread_join;"),
        std::pair("calls_blas", "it calls cblas_sscal;")}) {
    const auto refused = CheckSymbols(Exploit(name), KernelKind::kCpu);
    ASSERT_FALSE(refused) << name;
    EXPECT_THAT(refused.error().text, HasSubstr(what));
    EXPECT_THAT(refused.error().text, HasSubstr("docs/measurement.md lists what it may call"));
  }
}

TEST(SymbolPolicy, TheListsHoldWhatAKernelNeedsAndNothingThatSeesOrChangesTheWorldAroundIt) {
  for (const char* needed :
       {"sqrt", "sqrtf", "frexpl", "memcpy", "memset", "malloc", "_Znwm", "_ZdlPvm",
        "_ZNSt6thread4joinEv", "_ZSt20__throw_length_errorPKc", "GOMP_parallel",
        "omp_get_thread_num", "__cxa_guard_acquire", "_ZGVdN8v_expf", "pthread_mutex_lock"})
    EXPECT_TRUE(IsAllowedImport(KernelKind::kCpu, needed)) << needed;
  for (const char* refused : {"clock_gettime",
                              "time",
                              "fopen",
                              "open",
                              "read",
                              "write",
                              "socket",
                              "mmap",
                              "mprotect",
                              "getenv",
                              "pthread_create",
                              "_ZNSt6thread6detachEv",
                              "sched_setaffinity",
                              "syscall",
                              "memfd_create",
                              "dl_iterate_phdr",
                              "kill",
                              "signal",
                              "sigaction",
                              "nanosleep",
                              "fork",
                              "_ZNSt6chrono3_V212steady_clock3nowEv",
                              "_ZNSt12__basic_fileIcE4openEPKcSt13_Ios_Openmodei",
                              "cudaMemsetAsync",
                              "printf",
                              "stderr",
                              "environ",
                              "ptrace",
                              "prctl",
                              "shm_open",
                              "rand"})
    EXPECT_FALSE(IsAllowedImport(KernelKind::kCpu, refused)) << refused;
  for (const char* needed : {"cudaLaunchKernelExC", "__cudaRegisterFatBinary", "cudaMemsetAsync"})
    EXPECT_TRUE(IsAllowedImport(KernelKind::kCuda, needed)) << needed;
  for (const char* refused :
       {"cudaMalloc", "cudaHostAlloc", "cudaLaunchHostFunc", "cudaStreamCreateWithFlags",
        "cudaGetDriverEntryPoint", "cudaDeviceReset", "cudaIpcOpenMemHandle", "cudaEventRecord",
        "cuLaunchKernel", "dlopen", "_ZNSt6thread15_M_start_threadESt10unique_ptr",
        "GOMP_parallel"})
    EXPECT_FALSE(IsAllowedImport(KernelKind::kCuda, refused)) << refused;
}

TEST(SymbolPolicy, ALibraryIsNamedWithoutAPathAndWithItsOwnName) {
  EXPECT_TRUE(IsAllowedLibrary(KernelKind::kCpu, "libm.so.6"));
  EXPECT_TRUE(IsAllowedLibrary(KernelKind::kCpu, "libgomp.so.1"));
  EXPECT_TRUE(IsAllowedLibrary(KernelKind::kCuda, "libcudart.so.13"));
  EXPECT_FALSE(IsAllowedLibrary(KernelKind::kCuda, "libgomp.so.1"));
  for (const char* refused : {"/tmp/libm.so.6", "./libm.so.6", "libm.sox", "libcudart.so.13",
                              "libopenblas.so.0", "libcuda.so.1", ""})
    EXPECT_FALSE(IsAllowedLibrary(KernelKind::kCpu, refused)) << refused;
}

// A cheat is let past the policy only where the policy would refuse it: each other one is met at
// run time although it was admitted like any kernel.
TEST(SymbolPolicy, CheatsArePastItOnlyWhereItRefusesThem) {
  for (const auto& [file, kind] :
       {std::pair("eigh_cpu", KernelKind::kCpu), std::pair("eigh_h200", KernelKind::kCuda)}) {
    const auto target =
        LoadTarget(std::string(CRUCIBLE_SOURCE_DIR "/missions/targets/") + file + ".toml");
    ASSERT_TRUE(target) << target.error().text;
    for (const TargetExploit& exploit : target->exploits) {
      const auto past = std::find(exploit.command.begin(), exploit.command.end(), kAdmitAny);
      const std::string& word = exploit.command.back();
      const fs::path library = CRUCIBLE_LIB_DIR + word.substr(word.find('}') + 1);
      if (!fs::exists(library)) continue;  // a CUDA one, of a build without CUDA
      if (past == exploit.command.end()) continue;
      EXPECT_FALSE(CheckSymbols(library, kind) && CheckCode(library))
          << exploit.name << " needs no --admit-any";
    }
  }
}

TEST(SymbolPolicy, ReadsWhatTheLoaderReads) {
  const auto elf = ReadElfFile(Exploit("reads_clock"));
  ASSERT_TRUE(elf) << elf.error().text;
  EXPECT_THAT(elf->needed, Contains(HasSubstr("libc.so")));
  EXPECT_THAT(elf->imported, Contains("clock_gettime"));
  EXPECT_TRUE(std::any_of(elf->segments.begin(), elf->segments.end(),
                          [](const ElfSegment& segment) { return segment.executable; }));
}

// A section table is for tools: a file without one is read like any other.
TEST(SymbolPolicy, ALibraryWithoutASectionTableIsRefusedAllTheSame) {
  const auto folder = MakeTemporaryDirectory("symbol-policy-test");
  ASSERT_TRUE(folder);
  auto file = ReadFile(Exploit("loads_code"));
  ASSERT_TRUE(file);
  for (const std::size_t field : {0x28u, 0x3cu, 0x3eu})  // where it is, how many, which has names
    for (std::size_t i = 0; i < (field == 0x28u ? 8u : 2u); ++i) (*file)[field + i] = 0;
  ASSERT_TRUE(WriteFileAtomically(*folder / "k.so", *file));
  const auto refused = CheckSymbols(*folder / "k.so", KernelKind::kCpu);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("it calls dlsym"));
  (void)RemoveTree(*folder);
}

TEST(SymbolPolicy, WhatIsNoSharedLibraryIsRefusedAndNotRead) {
  const auto folder = MakeTemporaryDirectory("symbol-policy-test");
  ASSERT_TRUE(folder);
  const auto whole = ReadFile(Exploit("honest"));
  ASSERT_TRUE(whole);
  for (const std::string& content : {std::string(),
                                     std::string("\x7f"
                                                 "ELF"),
                                     std::string(5000, 'x'), whole->substr(0, 4000)}) {
    ASSERT_TRUE(WriteFileAtomically(*folder / "k.so", content));
    EXPECT_FALSE(CheckSymbols(*folder / "k.so", KernelKind::kCpu));
    EXPECT_FALSE(CheckSymbols(*folder / "k.so", KernelKind::kCuda));
  }
  EXPECT_FALSE(CheckSymbols(*folder / "none.so", KernelKind::kCpu));
  (void)RemoveTree(*folder);
}

}  // namespace
}  // namespace crucible::eigh
