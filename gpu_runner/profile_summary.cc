#include "gpu_runner/profile_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <utility>

namespace crucible {
namespace {

using Row = std::vector<std::string>;

// The columns of a table by name; the first of two alike.
class Columns {
 public:
  explicit Columns(const Row& header) {
    for (std::size_t i = 0; i < header.size(); ++i) index_.emplace(header[i], i);
  }
  bool Has(const std::string& name) const { return index_.contains(name); }
  std::string Of(const Row& row, const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() || found->second >= row.size() ? "" : row[found->second];
  }

 private:
  std::map<std::string, std::size_t> index_;
};

// "541,876" or "93.83"; nothing for "no data".
std::optional<double> Number(std::string text) {
  std::erase(text, ',');
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  return value;
}

// A kernel's name as both pages can be brought to say it. Of one kernel the details page says
// "void unnamed>::f<16>(unnamed>::Arguments)" and the source page
// "void a::b::<unnamed>::f<(int)16>(a::b::<unnamed>::Arguments)": "f<16>(Arguments)".
std::string KernelName(std::string name) {
  static const std::regex kNamespace("<?unnamed>::|\\(anonymous namespace\\)::|[A-Za-z_]\\w*::");
  static const std::regex kCast("\\((unsigned )?(bool|char|short|int|long|long long)\\)(?=-?\\d)");
  name = std::regex_replace(std::regex_replace(name, kNamespace, ""), kCast, "");
  return name.starts_with("void ") ? name.substr(5) : name;
}

// Without its parameters, of which the two pages may spell a template's differently.
std::string WithoutParameters(const std::string& name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += (name[i] == '<') - (name[i] == '>');
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

// What the letter before a unit multiplies by: "us" and "Gbyte/s" by the names that ncu gives.
double Prefix(std::string_view unit, std::string_view base) {
  static const std::map<std::string_view, double> kPrefixes{{"", 1},     {"n", 1e-9}, {"u", 1e-6},
                                                            {"m", 1e-3}, {"K", 1e3},  {"M", 1e6},
                                                            {"G", 1e9},  {"T", 1e12}};
  if (!unit.ends_with(base)) return 0;
  const auto found = kPrefixes.find(unit.substr(0, unit.size() - base.size()));
  return found == kPrefixes.end() ? 0 : found->second;
}

double Scaled(const std::string& unit, std::initializer_list<std::string_view> bases) {
  for (const std::string_view base : bases)
    if (const double factor = Prefix(unit, base); factor != 0) return factor;
  return 0;
}

// One launch, as the rows of one id give it.
struct Launch {
  KernelProfile figures;
  std::vector<std::pair<double, std::string>> advice;  // {estimated gain in percent, text}
};

void TakeMetric(const std::string& section, const std::string& name, const std::string& unit,
                double value, KernelProfile* kernel) {
  const auto percent = [&](const char* wanted, std::optional<double>* to) {
    if (name == wanted && unit == "%") *to = value;
  };
  if (name == "Duration") kernel->longest_us = value * Scaled(unit, {"s", "second"}) * 1e6;
  percent("DRAM Throughput", &kernel->dram_pct);
  percent("Memory Throughput", &kernel->memory_pct);
  percent("Compute (SM) Throughput", &kernel->compute_pct);
  percent("Achieved Occupancy", &kernel->occupancy_pct);
  percent("Theoretical Occupancy", &kernel->occupancy_max_pct);
  if (name == "Memory Throughput" && section.starts_with("Memory Workload"))
    if (const double factor = Scaled(unit, {"byte/s", "byte/second"}); factor != 0)
      kernel->bytes_per_s = value * factor;
  if (name == "Issued Warp Per Scheduler") kernel->issued_per_cycle = value;
  if (name == "Registers Per Thread") kernel->registers = value;
  constexpr std::string_view kLimit = "Block Limit ";
  if (name.starts_with(kLimit))
    kernel->block_limits.emplace_back(name.substr(kLimit.size()), value);
}

void TakeRow(const Columns& columns, const Row& row, Launch* launch) {
  launch->figures.name = KernelName(columns.Of(row, "Kernel Name"));
  launch->figures.grid = columns.Of(row, "Grid Size");
  launch->figures.block = columns.Of(row, "Block Size");
  if (columns.Of(row, "Rule Type") == "OPT") {
    const double gain = Number(columns.Of(row, "Estimated Speedup")).value_or(0);
    launch->advice.emplace_back(gain, columns.Of(row, "Rule Description"));
  }
  if (const auto value = Number(columns.Of(row, "Metric Value")))
    TakeMetric(columns.Of(row, "Section Name"), columns.Of(row, "Metric Name"),
               columns.Of(row, "Metric Unit"), *value, &launch->figures);
}

// Launches of one kernel as one: the longest one's figures.
void Merge(Launch launch, std::vector<KernelProfile>* kernels) {
  KernelProfile& figures = launch.figures;
  std::stable_sort(launch.advice.begin(), launch.advice.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [gain, text] : launch.advice)
    figures.advice.push_back(gain > 0 ? fmt::format("(up to {:.0f} %) {}", gain, text) : text);
  figures.launches = 1;
  figures.total_us = figures.longest_us;
  const auto same = [&](const KernelProfile& kernel) { return kernel.name == figures.name; };
  const auto found = std::find_if(kernels->begin(), kernels->end(), same);
  if (found == kernels->end()) {
    kernels->push_back(std::move(figures));
    return;
  }
  figures.launches += found->launches;
  figures.total_us += found->total_us;
  if (figures.longest_us > found->longest_us) {
    *found = std::move(figures);
  } else {
    found->launches = figures.launches;
    found->total_us = figures.total_us;
  }
}

// "stall_long_sb" and the like of one row; the largest. Those "(Not Issued)" are parts of the
// others.
void TakeReasons(const Row& header, const Row& row, StalledLine* line) {
  constexpr std::string_view kStall = "stall_";
  for (std::size_t i = 0; i < header.size() && i < row.size(); ++i) {
    if (!header[i].starts_with(kStall) || header[i].ends_with(")")) continue;
    const auto count = static_cast<std::int64_t>(Number(row[i]).value_or(0));
    if (count <= line->top_reason_samples) continue;
    line->top_reason_samples = count;
    line->top_reason = header[i].substr(kStall.size());
  }
}

void AddLine(StalledLine line, KernelProfile* kernel) {
  kernel->samples += line.samples;
  const auto same = [&](const StalledLine& other) {
    return other.place == line.place && other.text == line.text;
  };
  const auto found = std::find_if(kernel->lines.begin(), kernel->lines.end(), same);
  if (found == kernel->lines.end()) {
    kernel->lines.push_back(std::move(line));
    return;
  }
  found->samples += line.samples;
  if (found->top_reason == line.top_reason)
    found->top_reason_samples += line.top_reason_samples;
  else if (line.top_reason_samples > found->top_reason_samples)
    found->top_reason = line.top_reason, found->top_reason_samples = line.top_reason_samples;
}

// The source page: per kernel a file, its name, a header, and one row a line, with the line's
// instructions (no line number) below it.
void TakeSource(const std::vector<Row>& rows, std::vector<KernelProfile>* kernels) {
  KernelProfile* kernel = nullptr;
  std::string file;
  Row header;
  for (const Row& row : rows) {
    if (row.size() < 2) continue;
    if (row[0] == "File Path" || row[0] == "File Name") {
      file = row[1].substr(row[1].rfind('/') + 1);
    } else if (row[0] == "Function Name" || row[0] == "Kernel Name") {
      const std::string name = WithoutParameters(KernelName(row[1]));
      const auto found = std::find_if(
          kernels->begin(), kernels->end(),
          [&](const KernelProfile& other) { return WithoutParameters(other.name) == name; });
      kernel = found == kernels->end() ? nullptr : &*found;
    } else if (row[0] == "Line No" || row[0] == "Address") {
      header = row;
    } else if (kernel != nullptr && !row[0].empty() && !header.empty()) {
      const Columns columns(header);
      StalledLine line;
      line.place = header[0] == "Line No" ? fmt::format("{}:{}", file, row[0]) : row[0];
      line.text = columns.Of(row, "Source");
      line.samples = static_cast<std::int64_t>(Number(columns.Of(row, "# Samples")).value_or(0));
      TakeReasons(header, row, &line);
      if (line.samples > 0) AddLine(std::move(line), kernel);
    }
  }
  for (KernelProfile& item : *kernels)
    std::stable_sort(item.lines.begin(), item.lines.end(),
                     [](const auto& a, const auto& b) { return a.samples > b.samples; });
}

std::string Limiter(const KernelProfile& kernel) {
  if (kernel.occupancy_max_pct >= 99.5) return ", all that fit";
  double least = 0;
  for (const auto& [name, blocks] : kernel.block_limits)
    if (least == 0 || blocks < least) least = blocks;
  std::string names;
  for (const auto& [name, blocks] : kernel.block_limits)
    if (blocks == least) names += (names.empty() ? "" : " and ") + name;
  if (names.empty()) return "";
  return fmt::format(", limited by {} ({:.0f} blocks a multiprocessor)", names, least);
}

std::string Shortened(std::string text, std::size_t most) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::size_t start = text.find_first_not_of(" \t");
  text.erase(0, std::min(start, text.size()));
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most) + "…";
}

void RenderKernel(const KernelProfile& kernel, double all_us, std::size_t most_lines,
                  std::string* text) {
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty()) *text += fmt::format("  {:<10} {}\n", name, value);
  };
  *text +=
      fmt::format("{}: {} launch{}, {:.1f} us ({:.0f} %), grid {}, block {}\n", kernel.name,
                  kernel.launches, kernel.launches == 1 ? "" : "es", kernel.total_us,
                  all_us > 0 ? 100 * kernel.total_us / all_us : 0.0, kernel.grid, kernel.block);
  std::string value;
  if (kernel.bytes_per_s && kernel.dram_pct && *kernel.dram_pct > 0)
    value = fmt::format("{:.4g} GB/s of {:.4g} GB/s peak ({:.1f} %)", *kernel.bytes_per_s / 1e9,
                        *kernel.bytes_per_s / 1e7 / *kernel.dram_pct, *kernel.dram_pct);
  if (kernel.memory_pct)
    value += fmt::format("{}busiest memory unit {:.1f} % of peak", value.empty() ? "" : ", ",
                         *kernel.memory_pct);
  line("memory", value);
  value.clear();
  if (kernel.issued_per_cycle)
    value = fmt::format("{:.2f} of 1 instruction a cycle and scheduler ({:.0f} %)",
                        *kernel.issued_per_cycle, 100 * *kernel.issued_per_cycle);
  if (kernel.compute_pct)
    value += fmt::format("{}busiest compute unit {:.1f} % of peak", value.empty() ? "" : ", ",
                         *kernel.compute_pct);
  line("issue", value);
  value.clear();
  if (kernel.occupancy_pct && kernel.occupancy_max_pct)
    value = fmt::format("{:.1f} % of {:.0f} % possible{}", *kernel.occupancy_pct,
                        *kernel.occupancy_max_pct, Limiter(kernel));
  if (kernel.registers) value += fmt::format(", {:.0f} registers a thread", *kernel.registers);
  line("occupancy", value);
  for (std::size_t i = 0; i < kernel.lines.size() && i < most_lines; ++i) {
    const StalledLine& stalled = kernel.lines[i];
    line(i == 0 ? "stalls" : "",
         fmt::format(
             "{:.1f} % at {}, most of it {}: {}",
             100.0 * static_cast<double>(stalled.samples) / static_cast<double>(kernel.samples),
             stalled.place, stalled.top_reason.empty() ? "issuing" : stalled.top_reason,
             Shortened(stalled.text, 80)));
  }
  for (std::size_t i = 0; i < kernel.advice.size() && i < 2; ++i)
    line(i == 0 ? "ncu says" : "", Shortened(kernel.advice[i], 240));
}

}  // namespace

std::vector<Row> ParseCsv(std::string_view text) {
  std::vector<Row> rows;
  Row row;
  std::string field;
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"')
        field += text[i++];
      else if (c == '"')
        quoted = false;
      else
        field += c;
    } else if (c == '"') {
      quoted = any = true;
    } else if (c == ',' || c == '\n') {
      row.push_back(std::exchange(field, ""));
      if (c == '\n') {
        if (any || row.size() > 1) rows.push_back(row);
        row.clear();
        any = false;
      }
    } else if (c != '\r') {
      field += c;
      any = true;
    }
  }
  if (any) {
    row.push_back(field);
    rows.push_back(row);
  }
  return rows;
}

Result<std::vector<KernelProfile>> ParseProfile(std::string_view details_csv,
                                                std::string_view source_csv) {
  const std::vector<Row> rows = ParseCsv(details_csv);
  // ncu may say something about itself first.
  const auto header =
      std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row[0] == "ID"; });
  if (header == rows.end() || !Columns(*header).Has("Kernel Name") ||
      !Columns(*header).Has("Metric Name"))
    return Fail(ErrorKind::kInternal, "read", "Nsight Compute's details page",
                "its table has no columns ID, Kernel Name and Metric Name",
                "open the report with ncu-ui");
  const Columns columns(*header);
  std::vector<KernelProfile> kernels;
  std::string id;
  Launch launch;
  for (auto row = header + 1; row != rows.end(); ++row) {
    if (!id.empty() && (*row)[0] != id) Merge(std::exchange(launch, {}), &kernels);
    id = (*row)[0];
    TakeRow(columns, *row, &launch);
  }
  if (!id.empty()) Merge(std::move(launch), &kernels);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.total_us > b.total_us; });
  TakeSource(ParseCsv(source_csv), &kernels);
  return kernels;
}

std::string RenderProfile(const std::vector<KernelProfile>& kernels, std::size_t most_kernels,
                          std::size_t most_lines) {
  double all_us = 0;
  int launches = 0;
  for (const KernelProfile& kernel : kernels) {
    all_us += kernel.total_us;
    launches += kernel.launches;
  }
  std::string text = fmt::format("profile of {} launch{} of {} kernel{}, {:.1f} us together\n",
                                 launches, launches == 1 ? "" : "es", kernels.size(),
                                 kernels.size() == 1 ? "" : "s", all_us);
  for (std::size_t i = 0; i < kernels.size() && i < most_kernels; ++i)
    RenderKernel(kernels[i], all_us, most_lines, &text);
  if (kernels.size() > most_kernels)
    text += fmt::format("and {} more in the report\n", kernels.size() - most_kernels);
  return text;
}

}  // namespace crucible
