// symbol_policy.h: what a kernel library may be made of, read from its ELF file before it is loaded
// (loading runs its constructors).
//
// A kernel must do its own work: it may need the C, C++, OpenMP and mathematics runtimes, and
// nothing that solves the problem for it, not even a library that only happens to be loaded in the
// harness. It may not load code, start programs, or change memory protection either.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace crucible::eigh {

// kUsage with the name of the first library or symbol that is not allowed.
Result<> CheckSymbols(const std::filesystem::path& library);

// The weaker rule for a CUDA library, whose static runtime loads the driver by itself: the
// libraries it names, without the symbols.
Result<> CheckNeeded(const std::filesystem::path& library);

}  // namespace crucible::eigh
