// cpu_library.h: one built copy of a CPU kernel, loaded through its C ABI into this process (the
// worker's: see library_worker.h).
//
//   int         eigh_cpu_abi(void);                      // 1
//   const char* eigh_cpu_configuration(void);            // JSON text
//   size_t      eigh_cpu_workspace_bytes(int64_t batch, int64_t n, int threads);
//   int         eigh_cpu_solve(int64_t batch, int64_t n, const float* a, float* eigenvalues,
//                              float* eigenvectors, int32_t* info, void* workspace,
//                              size_t workspace_bytes, int threads);
// Row-major; eigenvectors in columns; eigenvalues ascending. Never unloaded: a library may have
// left threads behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace crucible::eigh {

inline constexpr int kCpuAbi = 1;

struct CpuLibrary {
  std::size_t (*workspace_bytes)(std::int64_t batch, std::int64_t n, int threads) = nullptr;
  int (*solve)(std::int64_t batch, std::int64_t n, const float* a, float* eigenvalues,
               float* eigenvectors, std::int32_t* info, void* workspace,
               std::size_t workspace_bytes, int threads) = nullptr;
  std::string configuration;  // JSON text, as the library gave it
};

// kUsage where it is no such library.
Result<CpuLibrary> LoadCpuLibrary(const std::filesystem::path& path);

}  // namespace crucible::eigh
