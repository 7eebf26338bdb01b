// profile_summary.h: what Nsight Compute measured, in a few lines a person or an agent can act on.
//
// Reads what `ncu --import REPORT --csv` prints: the details page for the figures, the source page
// for the stalls by line. Pure. A column or metric that is missing is left out of the text, because
// they differ between versions and GPUs; only a text that is no such table at all is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crucible {

struct StalledLine {
  std::string place;  // "k.cu:11"; of a build without line information, an instruction's address
  std::string text;   // the source, as far as the report has it
  std::int64_t samples = 0;
  std::string top_reason;  // "long_sb"
  std::int64_t top_reason_samples = 0;
};

// One kernel: its longest launch's figures, the samples of all of them.
struct KernelProfile {
  std::string name, grid, block;
  int launches = 0;
  double total_us = 0, longest_us = 0;
  std::optional<double> dram_pct, memory_pct, compute_pct;  // of the device's peak
  std::optional<double> bytes_per_s;
  std::optional<double> issued_per_cycle;  // warps a scheduler issues; its peak is 1
  std::optional<double> occupancy_pct, occupancy_max_pct;
  std::optional<double> registers;
  std::vector<std::pair<std::string, double>> block_limits;  // {"Registers", blocks per SM}
  std::vector<std::string> advice;                           // of ncu's rules, largest gain first
  std::vector<StalledLine> lines;                            // most samples first
  std::int64_t samples = 0;
};

// Longest kernel first. kInternal: not ncu's table. `source_csv` may be empty.
Result<std::vector<KernelProfile>> ParseProfile(std::string_view details_csv,
                                                std::string_view source_csv);

std::string RenderProfile(const std::vector<KernelProfile>& kernels, std::size_t most_kernels = 5,
                          std::size_t most_lines = 5);

// Rows of comma-separated, quoted fields; quotes are doubled inside, and may hold line breaks.
std::vector<std::vector<std::string>> ParseCsv(std::string_view text);

}  // namespace crucible
