#include "checks/eigh/cpu_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace crucible::eigh {
namespace {

template <class Function>
Result<Function> Symbol(void* handle, const std::filesystem::path& path, const char* name) {
  if (void* address = ::dlsym(handle, name)) return reinterpret_cast<Function>(address);
  return Fail(ErrorKind::kUsage, "load library", path.string(),
              fmt::format("it does not export {}", name),
              "build it against kernels/eigh/cpu/eigh_cpu.h");
}

}  // namespace

Result<CpuLibrary> LoadCpuLibrary(const std::filesystem::path& path) {
  CpuLibrary library;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Fail(ErrorKind::kUsage, "load library", path.string(),
                why == nullptr ? "the loader refused it" : why);
  }
  CRUCIBLE_ASSIGN(auto* const abi, Symbol<int (*)()>(handle, path, "eigh_cpu_abi"));
  if (const int version = abi(); version != kCpuAbi)
    return Fail(ErrorKind::kUsage, "load library", path.string(),
                fmt::format("its ABI is {}, this harness speaks {}", version, kCpuAbi),
                "rebuild it against kernels/eigh/cpu/eigh_cpu.h");
  CRUCIBLE_ASSIGN(auto* const configuration,
                  Symbol<const char* (*)()>(handle, path, "eigh_cpu_configuration"));
  CRUCIBLE_ASSIGN(library.workspace_bytes, Symbol<decltype(library.workspace_bytes)>(
                                               handle, path, "eigh_cpu_workspace_bytes"));
  CRUCIBLE_ASSIGN(library.solve, Symbol<decltype(library.solve)>(handle, path, "eigh_cpu_solve"));
  const char* text = configuration();
  library.configuration = text == nullptr ? "" : text;
  return library;
}

}  // namespace crucible::eigh
