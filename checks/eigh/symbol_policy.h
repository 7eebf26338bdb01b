// symbol_policy.h: what a kernel library may be made of, read from its ELF file before it is loaded
// (loading runs its constructors).
//
// A kernel must do its own work: it may name the runtimes of C, C++, OpenMP, mathematics and CUDA,
// and import from them what allowed_imports.h lists, and nothing else: a library that would solve
// the problem, a clock, a file, a descriptor or a process is refused by its name. Constructors are
// allowed, because C++ statics, OpenMP and nvcc's registration need them: they run after the worker
// is secluded (checks/harness/seclusion.h) and before any input exists.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "checks/eigh/allowed_imports.h"

namespace crucible::eigh {

// kUsage with the names of the libraries or symbols that are not allowed.
Result<> CheckSymbols(const std::filesystem::path& library, KernelKind kind);

}  // namespace crucible::eigh
