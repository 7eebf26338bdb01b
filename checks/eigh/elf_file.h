// elf_file.h: of a shared library, what the dynamic loader will do with it, read from the file.
//
// Everything comes from the program headers and the dynamic section, as the loader's own view does:
// a section table is only for tools, and one that lies changes nothing here. A symbol counts as
// imported when a relocation asks for it, which is the only way that the loader looks one up.
// Pure; nothing of the file is executed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible::eigh {

struct ElfSegment {
  std::uint64_t address = 0;
  std::string bytes;  // as far as they are in the file
  bool writable = false, executable = false;
};

struct ElfFile {
  std::vector<std::string> needed;        // libraries it names
  std::vector<std::string> search_paths;  // RPATH and RUNPATH
  std::vector<std::string> stand_ins;     // libraries it lets answer for itself, or watch it
  std::vector<std::string> imported;      // symbols of others, sorted, each once
  std::vector<ElfSegment> segments;       // that are loaded
  bool resolves_by_code = false;          // IFUNC: its own code runs while the loader works
  bool relocates_code = false;            // TEXTREL: code is written to before it runs
  bool executable_stack = false;
};

// kUsage where it is no 64-bit ELF shared library or its tables lie outside the file.
Result<ElfFile> ReadElfFile(const std::filesystem::path& library);

}  // namespace crucible::eigh
