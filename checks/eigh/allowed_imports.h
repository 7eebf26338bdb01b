// allowed_imports.h: what a kernel library may take from others, by name. Everything else is
// refused: docs/measurement.md says why, in words for those who write kernels.
#pragma once

#include <string_view>

namespace crucible::eigh {

enum class KernelKind { kCpu, kCuda };

// A library that the file may name. `name` as written in the file.
bool IsAllowedLibrary(KernelKind kind, std::string_view name);
// A function or object of such a library that a kernel may use.
bool IsAllowedImport(KernelKind kind, const char* symbol);

}  // namespace crucible::eigh
