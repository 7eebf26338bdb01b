#include "checks/eigh/symbol_policy.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "checks/eigh/elf_file.h"

namespace crucible::eigh {
namespace {

constexpr std::size_t kMostNames = 8;

// As it was written in the source.
std::string Readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : symbol;
}

// The first of these folders ("/usr/lib/llvm-14/lib:…") that is not the system's; "" where all are.
std::string NotOfTheSystem(const std::string& paths) {
  std::istringstream folders(paths);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const bool system = folder.starts_with("/usr/lib") || folder.starts_with("/lib");
    if (!system || folder.find("/..") != std::string::npos) return folder.empty() ? "." : folder;
  }
  return "";
}

std::string NextStep(KernelKind kind) {
  return fmt::format(
      "a kernel does its own work with memory, strings, maths{}: docs/measurement.md lists what it "
      "may call; link the C++ runtime{} dynamically",
      kind == KernelKind::kCpu ? ", the C++ runtime, std::thread and OpenMP"
                               : ", the C++ runtime and launches on the stream that it is given",
      kind == KernelKind::kCpu ? "" : " and CUDA's");
}

}  // namespace

Result<> CheckSymbols(const std::filesystem::path& library, KernelKind kind) {
  CRUCIBLE_ASSIGN(const ElfFile elf, ReadElfFile(library));
  const auto refuse = [&](const std::string& cause) {
    return Fail(ErrorKind::kUsage, "admit", library.filename().string(), cause, NextStep(kind));
  };
  for (const std::string& needed : elf.needed)
    if (!IsAllowedLibrary(kind, needed)) return refuse(fmt::format("it needs {}", needed));
  for (const std::string& other : elf.stand_ins)
    return refuse(fmt::format("it lets {} answer for it", other));
  // A CUDA worker has all that may be named loaded already; a CPU kernel could bring a libgomp.
  if (kind == KernelKind::kCpu)
    for (const std::string& paths : elf.search_paths)
      if (const std::string bad = NotOfTheSystem(paths); !bad.empty())
        return refuse(fmt::format("it has its libraries searched in {}", bad));
  std::vector<std::string> others;
  for (const std::string& symbol : elf.imported)
    if (!IsAllowedImport(kind, symbol.c_str())) others.push_back(Readable(symbol));
  if (others.empty()) return {};
  const std::size_t more = others.size() > kMostNames ? others.size() - kMostNames : 0;
  others.resize(others.size() - more);
  return refuse(fmt::format("it calls {}{}", fmt::join(others, ", "),
                            more > 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace crucible::eigh
