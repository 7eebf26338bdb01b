#include "checks/eigh/symbol_policy.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/files.h"

namespace crucible::eigh {
namespace {

constexpr std::array<std::string_view, 16> kAllowedLibraries = {
    "libc.so",    "libm.so",      "libmvec.so", "libstdc++.so",  "libgcc_s.so", "libgomp.so",
    "libomp.so",  "libatomic.so", "libdl.so",   "libpthread.so", "librt.so",    "ld-linux",
    "libasan.so", "libubsan.so",  "libtsan.so", "liblsan.so"};  // the last four: sanitizer builds

constexpr std::array<std::string_view, 19> kForbiddenSymbols = {"dlopen",
                                                                "dlmopen",
                                                                "dlsym",
                                                                "dlvsym",
                                                                "system",
                                                                "popen",
                                                                "fork",
                                                                "vfork",
                                                                "clone",
                                                                "execve",
                                                                "execv",
                                                                "execvp",
                                                                "posix_spawn",
                                                                "posix_spawnp",
                                                                "ptrace",
                                                                "syscall",
                                                                "mprotect",
                                                                "process_vm_writev",
                                                                "sched_setaffinity"};

bool IsAllowedLibrary(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return std::any_of(kAllowedLibraries.begin(), kAllowedLibraries.end(),
                     [&](std::string_view allowed) { return name.starts_with(allowed); });
}

struct ElfNames {
  std::vector<std::string> needed, undefined;
};

// One table of the file with bounds checked; empty when it lies outside.
template <class T>
std::vector<T> Table(const std::string& file, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) return {};
  std::vector<T> table(bytes / sizeof(T));
  std::memcpy(table.data(), file.data() + offset, table.size() * sizeof(T));
  return table;
}

std::string NameAt(const std::string& file, const Elf64_Shdr& strings, std::uint64_t index) {
  const std::uint64_t at = strings.sh_offset + index;
  if (index >= strings.sh_size || at >= file.size()) return "";
  return file.substr(at, ::strnlen(file.data() + at, file.size() - at));
}

Result<ElfNames> ReadNames(const std::filesystem::path& library) {
  CRUCIBLE_ASSIGN(const std::string file, ReadFile(library));
  const auto refuse = [&](std::string_view cause) {
    return Fail(ErrorKind::kUsage, "read the symbols of", library.string(), cause,
                "build it as a 64-bit ELF shared library and do not strip its section table");
  };
  const std::vector<Elf64_Ehdr> header = Table<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64)
    return refuse("it is no 64-bit ELF file");
  const auto sections = Table<Elf64_Shdr>(file, header[0].e_shoff,
                                          std::uint64_t{header[0].e_shnum} * sizeof(Elf64_Shdr));
  ElfNames names;
  bool has_symbols = false;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    if (section.sh_type == SHT_DYNAMIC) {
      for (const auto& entry : Table<Elf64_Dyn>(file, section.sh_offset, section.sh_size))
        if (entry.d_tag == DT_NEEDED)
          names.needed.push_back(NameAt(file, strings, entry.d_un.d_val));
    } else if (section.sh_type == SHT_DYNSYM) {
      has_symbols = true;
      for (const auto& symbol : Table<Elf64_Sym>(file, section.sh_offset, section.sh_size))
        if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0)
          names.undefined.push_back(NameAt(file, strings, symbol.st_name));
    }
  }
  if (!has_symbols) return refuse("it has no dynamic symbol table");
  return names;
}

// The loaded object that would satisfy this symbol now, or "".
std::string ProviderOf(const std::string& symbol) {
  void* address = ::dlsym(RTLD_DEFAULT, symbol.c_str());
  Dl_info info{};
  if (address == nullptr || ::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

tl::unexpected<Error> Refuse(const std::filesystem::path& library, const std::string& cause) {
  return Fail(ErrorKind::kUsage, "admit", library.filename().string(), cause,
              "a kernel does its own work with the C, C++, OpenMP and maths runtimes alone");
}

}  // namespace

Result<> CheckNeeded(const std::filesystem::path& library) {
  CRUCIBLE_ASSIGN(const ElfNames names, ReadNames(library));
  for (const std::string& needed : names.needed)
    if (!IsAllowedLibrary(needed)) return Refuse(library, fmt::format("it needs {}", needed));
  return {};
}

Result<> CheckSymbols(const std::filesystem::path& library) {
  CRUCIBLE_TRY(CheckNeeded(library));
  CRUCIBLE_ASSIGN(const ElfNames names, ReadNames(library));
  const auto refuse = [&](const std::string& cause) { return Refuse(library, cause); };
  Dl_info self{};
  ::dladdr(reinterpret_cast<void*>(&CheckSymbols), &self);
  for (const std::string& symbol : names.undefined) {
    if (std::find(kForbiddenSymbols.begin(), kForbiddenSymbols.end(), symbol) !=
        kForbiddenSymbols.end())
      return refuse(fmt::format("it calls {}", symbol));
    const std::string provider = ProviderOf(symbol);
    // The harness itself provides only copies of runtime data and inline functions.
    if (!provider.empty() && !IsAllowedLibrary(provider) && provider != self.dli_fname)
      return refuse(fmt::format("it calls {} of {}", symbol, provider));
  }
  return {};
}

}  // namespace crucible::eigh
