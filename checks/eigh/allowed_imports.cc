#include "checks/eigh/allowed_imports.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace crucible::eigh {
namespace {

// Up to the version: libm.so.6 is libm.so. What a worker has loaded before the kernel, or finds in
// the system's folders.
constexpr std::string_view kRuntimes[] = {"libc.so",
                                          "libm.so",
                                          "libstdc++.so",
                                          "libgcc_s.so",
                                          "ld-linux-x86-64.so",
                                          "ld-linux-aarch64.so"};
constexpr std::string_view kCpuRuntimes[] = {"libmvec.so",   "libgomp.so", "libomp.so",
                                             "libatomic.so", "libdl.so",   "libpthread.so",
                                             "librt.so"};
constexpr std::string_view kCudaRuntimes[] = {"libcudart.so"};

// In each list, a `*` stands for any rest. No clock, no file, no descriptor, no environment, no
// process, no signal, no memory mapping, no code loading: a kernel has no use for any of them.
constexpr const char* kImports[] = {
    // What every linker and compiler puts in.
    "_ITM_*TMCloneTable", "__gmon_start__", "__cxa_*", "__gxx_personality_v0",
    "__gcc_personality_v0", "_Unwind_*", "__tls_get_addr", "__stack_chk_fail", "__dso_handle",
    "__errno_location", "__libc_single_threaded", "__assert_fail", "abort",
    // Memory and strings.
    "malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "memalign",
    "mem[cs]*", "memmove", "__mem*_chk", "mempcpy", "strlen", "strnlen", "strcmp", "strncmp",
    "strchr", "strrchr", "strstr", "strcpy", "strncpy", "strcat", "__str*_chk", "snprintf",
    "vsnprintf", "__snprintf_chk", "__vsnprintf_chk", "qsort", "bsearch", "bcmp",
    // Operators new and delete, exceptions, type information, and the parts of the containers and
    // of std::string that are no templates.
    "_Zn[aw]*", "_Zd[al]*", "_ZT[IS]*", "_ZTVN10__cxxabiv1*", "_ZTVSt*_error", "_ZTVSt*exception",
    "_ZTVSt9bad_alloc", "_ZTVSt*argument", "_ZTVSt12out_of_range", "_ZSt*__throw_*", "_ZNSaI*",
    "_ZNKSaI*", "_ZSt7nothrow", "_ZSt9terminatev", "_ZSt*rethrow_exception*",
    "_ZSt17current_exceptionv", "_ZNSt15__exception_ptr*", "_ZNKSt15__exception_ptr*",
    "_ZNSt*_error[CD]*", "_ZNSt*exception[CD]*", "_ZNSt9bad_alloc[CD]*", "_ZNSt*argument[CD]*",
    "_ZNSt12out_of_range[CD]*", "_ZNKSt*4whatEv", "_ZNKSt7__cxx1112basic_stringIc*",
    "_ZNSt7__cxx1112basic_stringIc*", "_ZSt*_Rb_tree_*", "_ZNSt8__detail15_List_node_base*",
    "_ZNKSt8__detail20_Prime_rehash_policy*", "_ZSt11_Hash_bytes*", "_ZNSt3_V2*_categoryEv",
    // Integers and fractions wider than the machine's.
    "__[a-z]*[dstx]i[34]", "__[a-z]*[dstx]f[23]", "__float*", "__fix*", "__mul[sdtx]c3",
    "__div[sdtx]c3"};

// The threads of a call: started by std::thread or OpenMP and joined (a detached one is refused),
// and what holds them in step.
constexpr const char* kCpuImports[] = {"_ZNSt6thread15_M_start_thread*",
                                       "_ZNSt6thread4joinEv",
                                       "_ZNSt6thread6_State*",
                                       "_ZTVNSt6thread6_StateE",
                                       "_ZNSt6thread20hardware_concurrencyEv",
                                       "_ZNSt18condition_variable*",
                                       "pthread_mutex_*",
                                       "pthread_mutexattr_*",
                                       "pthread_cond_wait",
                                       "pthread_cond_signal",
                                       "pthread_cond_broadcast",
                                       "pthread_cond_init",
                                       "pthread_cond_destroy",
                                       "pthread_barrier_*",
                                       "pthread_spin_*",
                                       "pthread_once",
                                       "__pthread_key_create",
                                       "__once_proxy",
                                       "_ZSt15__once_callable",
                                       "_ZSt11__once_call",
                                       "sched_yield",
                                       "GOMP_*",
                                       "omp_*",
                                       "__kmpc_*",
                                       "__atomic_*"};

// Queueing work on the stream that it is given, and asking about the device. No memory, stream or
// event of its own, no host function, no way to the driver: see crucible/eigh.h.
constexpr const char* kCudaImports[] = {"__cudaRegisterFatBinary",
                                        "__cudaRegisterFatBinaryEnd",
                                        "__cudaUnregisterFatBinary",
                                        "__cudaRegisterFunction",
                                        "__cudaRegisterVar",
                                        "__cudaInitModule",
                                        "__cudaGetKernel",
                                        "__cudaLaunchKernel*",
                                        "__cudaPushCallConfiguration",
                                        "__cudaPopCallConfiguration",
                                        "cudaLaunchKernel*",
                                        "cudaLaunchCooperativeKernel",
                                        "cudaFuncSetAttribute",
                                        "cudaFuncGetAttributes",
                                        "cudaFuncSetCacheConfig",
                                        "cudaOccupancy*",
                                        "cudaGetDevice",
                                        "cudaDeviceGetAttribute",
                                        "cudaMemsetAsync",
                                        "cudaMemset2DAsync",
                                        "cudaMemcpyAsync",
                                        "cudaMemcpy2DAsync",
                                        "cudaGetLastError",
                                        "cudaPeekAtLastError",
                                        "cudaGetErrorString",
                                        "cudaGetErrorName",
                                        "pthread_mutex_lock",
                                        "pthread_mutex_unlock",
                                        "pthread_once",
                                        "__pthread_key_create",
                                        "exit",
                                        "__atomic_*"};

// Of libm, each also for float (f) and long double (l).
constexpr std::string_view kMaths[] = {
    "acos",    "acosh",     "asin",        "asinh", "atan",      "atan2",  "atanh",  "cbrt",
    "ceil",    "copysign",  "cos",         "cosh",  "erf",       "erfc",   "exp",    "exp10",
    "exp2",    "expm1",     "fabs",        "fdim",  "floor",     "fma",    "fmax",   "fmin",
    "fmod",    "frexp",     "hypot",       "ilogb", "ldexp",     "lgamma", "llrint", "llround",
    "log",     "log10",     "log1p",       "log2",  "logb",      "lrint",  "lround", "modf",
    "nan",     "nearbyint", "nextafter",   "pow",   "remainder", "remquo", "rint",   "round",
    "scalbln", "scalbn",    "significand", "sin",   "sincos",    "sinh",   "sqrt",   "tan",
    "tanh",    "tgamma",    "trunc"};
// Of libmvec, and what -ffast-math calls.
constexpr const char* kVectorMaths[] = {"_ZGV*", "__*_finite", "__signbit*", "__fpclassify*"};

#if defined(CRUCIBLE_SANITIZED)  // this build's kernels report to its own sanitizers
constexpr std::string_view kSanitizers[] = {"libasan.so", "libubsan.so", "libtsan.so",
                                            "liblsan.so"};
constexpr const char* kSanitizerImports[] = {"__asan_*", "__ubsan_*", "__tsan_*", "__sanitizer_*"};
#endif

template <class List>
bool HasLibrary(const List& list, std::string_view name) {
  return std::any_of(std::begin(list), std::end(list), [&](std::string_view allowed) {
    return name.starts_with(allowed) &&
           (name.size() == allowed.size() || name[allowed.size()] == '.');
  });
}

template <class List>
bool Matches(const List& list, const char* symbol) {
  return std::any_of(std::begin(list), std::end(list), [&](const char* pattern) {
    return ::fnmatch(pattern, symbol, FNM_NOESCAPE) == 0;
  });
}

bool IsMaths(std::string_view symbol) {
  const auto listed = [](std::string_view name) {
    return std::find(std::begin(kMaths), std::end(kMaths), name) != std::end(kMaths);
  };
  return listed(symbol) || ((symbol.ends_with('f') || symbol.ends_with('l')) &&
                            listed(symbol.substr(0, symbol.size() - 1)));
}

}  // namespace

bool IsAllowedLibrary(KernelKind kind, std::string_view name) {
#if defined(CRUCIBLE_SANITIZED)
  if (HasLibrary(kSanitizers, name)) return true;
#endif
  if (HasLibrary(kRuntimes, name)) return true;
  return kind == KernelKind::kCpu ? HasLibrary(kCpuRuntimes, name)
                                  : HasLibrary(kCudaRuntimes, name);
}

bool IsAllowedImport(KernelKind kind, const char* symbol) {
#if defined(CRUCIBLE_SANITIZED)
  if (Matches(kSanitizerImports, symbol)) return true;
#endif
  if (Matches(kImports, symbol) || IsMaths(symbol) || Matches(kVectorMaths, symbol)) return true;
  return kind == KernelKind::kCpu ? Matches(kCpuImports, symbol) : Matches(kCudaImports, symbol);
}

}  // namespace crucible::eigh
