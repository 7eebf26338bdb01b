#include "checks/eigh/code_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/subprocess.h"
#include "checks/eigh/elf_file.h"

namespace crucible::eigh {
namespace {

constexpr std::chrono::seconds kDecodingLimit{60};
constexpr std::size_t kMostListing = std::size_t{256} << 20;
constexpr char kNextStep[] =
    "a kernel computes and returns: docs/measurement.md, \"What a kernel may call\"";

// Mnemonics as objdump writes them, and what they are for.
struct Forbidden {
  std::string_view mnemonic, operand;  // the operand's beginning; empty: any
  const char* doing;
};
constexpr char kCalls[] = "makes a system call of its own";
constexpr char kCounts[] = "reads the processor's counter";
constexpr Forbidden kForbidden[] = {{"syscall", "", kCalls},  {"sysenter", "", kCalls},
                                    {"int", "$0x80", kCalls}, {"svc", "", kCalls},
                                    {"rdtsc", "", kCounts},   {"rdtscp", "", kCounts},
                                    {"rdpmc", "", kCounts}};

#if defined(__x86_64__)
// Their bytes, wherever they are.
std::vector<std::uint64_t> Hits(const ElfSegment& segment) {
  using std::literals::operator""sv;
  static constexpr std::string_view kBytes[] = {"\x0f\x05"sv, "\x0f\x34"sv,     "\xcd\x80"sv,
                                                "\x0f\x31"sv, "\x0f\x01\xf9"sv, "\x0f\x33"sv};
  std::vector<std::uint64_t> hits;
  for (const std::string_view bytes : kBytes)
    for (std::size_t at = 0; (at = segment.bytes.find(bytes, at)) != std::string::npos; ++at)
      hits.push_back(segment.address + at);
  return hits;
}
#else
// Instructions are words: svc, and mrs of a timer or performance counter (op0 3, op1 3, CRn 9 or
// 14).
std::vector<std::uint64_t> Hits(const ElfSegment& segment) {
  std::vector<std::uint64_t> hits;
  for (std::size_t at = 0; at + 4 <= segment.bytes.size(); at += 4) {
    std::uint32_t word = 0;
    for (int i = 3; i >= 0; --i)
      word = word << 8 | static_cast<unsigned char>(segment.bytes[at + i]);
    const std::uint32_t group = word & 0xfffff000u;
    if ((word & 0xffe0001fu) == 0xd4000001u || group == 0xd53be000u || group == 0xd53b9000u)
      hits.push_back(segment.address + at);
  }
  return hits;
}
#endif

struct Instruction {
  std::uint64_t end = 0;
  std::string text;
};

struct Listing {
  std::map<std::uint64_t, Instruction> instructions;  // by address
  std::set<std::uint64_t> jumped_to;                  // by direct jumps and calls
};

bool IsHex(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Lines such as "    1179:\t0f 05                \tsyscall" of objdump -dw.
Listing ParseListing(const std::string& output) {
  Listing listing;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(' ');
    const std::string address_text = line.substr(start, colon - start);
    if (!IsHex(address_text)) continue;
    const std::size_t tab = line.find('\t', colon + 2);
    const std::uint64_t address = std::stoull(address_text, nullptr, 16);
    std::istringstream bytes(line.substr(colon + 2, tab - colon - 2));
    std::uint64_t size = 0;
    for (std::string byte; bytes >> byte;) size += byte.size() / 2;  // "0f 05" or "d4000001"
    const std::string text = tab == std::string::npos ? "" : line.substr(tab + 1);
    listing.instructions[address] = {address + size, text};
    // "je     1523 <…>": a direct jump's operand is the address itself.
    std::istringstream words(text);
    std::string mnemonic, operand;
    while (words >> mnemonic)
      if (mnemonic.starts_with('j') || mnemonic.starts_with("call") ||
          mnemonic.starts_with("loop") || mnemonic == "xbegin")
        if (words >> operand && IsHex(operand))
          listing.jumped_to.insert(std::stoull(operand, nullptr, 16));
  }
  return listing;
}

// What this instruction does that a kernel must not; empty: nothing of that kind.
std::string_view DoingOf(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {  // "rex.W syscall": prefixes are words of their own
    for (const Forbidden& item : kForbidden) {
      if (word != item.mnemonic) continue;
      std::string operand;
      words >> operand;
      if (operand.starts_with(item.operand)) return item.doing;
    }
    if (word == "mrs" &&
        (text.find("cntvct") != std::string::npos || text.find("cntpct") != std::string::npos ||
         text.find("pmccntr") != std::string::npos))
      return kCounts;
  }
  return "";
}

// Empty, or what is at this address.
std::string Judge(const Listing& listing, std::uint64_t hit) {
  auto found = listing.instructions.upper_bound(hit);
  if (found == listing.instructions.begin() || hit >= (--found)->second.end)
    return fmt::format(
        "at {:#x} it holds bytes of a system call or a counter's reading where no code is known",
        hit);
  const std::string_view doing = DoingOf(found->second.text);
  if (!doing.empty())
    return fmt::format("it {}: {} at {:#x}", doing, found->second.text, found->first);
  const auto inside = listing.jumped_to.upper_bound(found->first);
  if (inside != listing.jumped_to.end() && *inside < found->second.end)
    return fmt::format(
        "it jumps into the middle of the instruction at {:#x}, which hides a system call or a "
        "counter's reading",
        found->first);
  return "";
}

}  // namespace

Result<> CheckCode(const std::filesystem::path& library) {
  CRUCIBLE_ASSIGN(const ElfFile elf, ReadElfFile(library));
  const auto refuse = [&](const std::string& cause) {
    return Fail(ErrorKind::kUsage, "admit", library.filename().string(), cause, kNextStep);
  };
  if (elf.resolves_by_code)
    return refuse(
        "its own code runs while it is loaded, to choose functions (IFUNC, target_clones)");
  if (elf.relocates_code) return refuse("its code is written to while it is loaded (TEXTREL)");
  if (elf.executable_stack) return refuse("its stack is executable");
  std::vector<std::uint64_t> hits;
  for (const ElfSegment& segment : elf.segments) {
    if (!segment.executable) continue;
    if (segment.writable) return refuse("it has memory that is both written and executed");
    const std::vector<std::uint64_t> more = Hits(segment);
    hits.insert(hits.end(), more.begin(), more.end());
  }
  if (hits.empty()) return {};
  const auto objdump = FindExecutable("objdump");
  if (!objdump)
    return Fail(ErrorKind::kUnavailable, "search the code of", library.string(),
                "objdump is not installed", "install binutils");
  auto run = RunCaptured({.argv = {objdump->string(), "-dw", library.string()}}, kDecodingLimit, {},
                         kMostListing);
  if (!run) return Within("search the code of " + library.string(), run.error());
  if (run->timed_out || !run->status.ok())
    return refuse("objdump cannot decode it: " + run->err.substr(0, 200));
  const Listing listing = ParseListing(run->out);
  std::sort(hits.begin(), hits.end());
  for (const std::uint64_t hit : hits)
    if (const std::string cause = Judge(listing, hit); !cause.empty()) return refuse(cause);
  return {};
}

}  // namespace crucible::eigh
