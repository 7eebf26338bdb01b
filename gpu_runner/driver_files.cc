#include "gpu_runner/driver_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/fd.h"
#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::optional<fs::path> Root() {
  if (IsSet("CRUCIBLE_DRIVER_FILES")) return std::getenv("CRUCIBLE_DRIVER_FILES");
  if (IsSet("CRUCIBLE_NVML_LIBRARY")) return std::nullopt;  // its GPUs are not this machine's
  return "/";
}

// The value of "NAME: value" in the text of an `information` file.
std::string Field(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// By opening it: what a control group denies, no look at permissions shows.
bool MayOpen(const fs::path& node) {
  return UniqueFd(::open(node.c_str(), O_RDWR | O_CLOEXEC)).valid();
}

// A GPU that fell off its bus still has its files; its configuration reads as ones.
bool AnswersOnBus(const fs::path& configuration) {
  const UniqueFd fd(::open(configuration.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint16_t vendor = 0xffff;
  return fd.valid() && ::read(fd.get(), &vendor, sizeof vendor) == sizeof vendor &&
         vendor != 0xffff;
}

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error))
    entries.push_back(item->path());
  return entries;
}

}  // namespace

std::vector<Device> GpusInDriverFiles() {
  const auto root = Root();
  if (!root) return {};
  std::vector<fs::path> gpus = Entries(*root / "proc/driver/nvidia/gpus");
  std::sort(gpus.begin(), gpus.end());  // named by PCI bus, as nvidia-smi counts
  std::vector<Device> devices;
  for (const fs::path& gpu : gpus) {
    const auto text = ReadFile(gpu / "information");
    const std::string uuid = text ? Field(*text, "GPU UUID") : "";
    // One that cannot be told (the driver writes ?s for a GPU that it has not started yet) or does
    // not answer is NVML's to judge, and so are all, because the order counts.
    if (!uuid.starts_with("GPU-") || uuid.find('?') != std::string::npos) return {};
    if (!AnswersOnBus(*root / "sys/bus/pci/devices" / gpu.filename() / "config")) return {};
    const std::string minor = Field(*text, "Device Minor");
    if (Field(*text, "GPU Excluded") == "Yes" || !MayOpen(*root / "dev" / ("nvidia" + minor)))
      continue;
    devices.push_back({true, uuid, static_cast<int>(devices.size()), Field(*text, "Model")});
  }
  return devices;
}

std::string DriverVersionInFiles() {
  const auto root = Root();
  std::istringstream words(root ? ReadFile(*root / "proc/driver/nvidia/version").value_or("") : "");
  for (std::string word; words >> word;)  // "NVRM version: NVIDIA UNIX … x86_64  580.159.04 …"
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

bool HasNvidiaDriver() {
  const auto root = Root();
  std::error_code error;
  return root && fs::exists(*root / "proc/driver/nvidia/version", error);
}

bool NobodyUsesCuda() {
  const auto root = Root();
  if (!root) return false;
  // CUDA's memory driver has an entry here for each GPU that a process has made a context on.
  std::error_code error;
  const fs::path in_use = *root / "proc/driver/nvidia-uvm/gpus";
  return fs::is_directory(in_use, error) && fs::is_empty(in_use, error) && !error;
}

}  // namespace crucible
