// code_scan.h: is there machine code in a library that a kernel has no use for?
//
// Refused: system calls of its own making (which no symbol table shows), reading the processor's
// time or performance counters, memory that is both written and executed, an executable stack, code
// that the loader rewrites (TEXTREL) or runs while it works (IFUNC).
//
// The bytes of such an instruction also occur inside others, as part of a constant, so a hit is
// looked up in what objdump decodes: it counts when it is the instruction, or when a jump leads
// into the middle of the one around it, or when no instruction is known there. What only an
// indirect jump reaches is not seen; the filter of the worker (checks/harness/seclusion.h) meets it
// when it runs.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace crucible::eigh {

// kUsage with what and where; kUnavailable where a hit has to be decoded and there is no objdump.
Result<> CheckCode(const std::filesystem::path& library);

}  // namespace crucible::eigh
