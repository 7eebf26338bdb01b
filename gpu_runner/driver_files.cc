#include "gpu_runner/driver_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/files.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

std::optional<fs::path> DriverFolder() {
  if (IsSet("CRUCIBLE_DRIVER_FILES")) return std::getenv("CRUCIBLE_DRIVER_FILES");
  if (IsSet("CRUCIBLE_NVML_LIBRARY")) return std::nullopt;  // its GPUs are not this machine's
  return "/proc/driver";
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

bool MayOpen(const std::string& minor) {
  if (IsSet("CRUCIBLE_DRIVER_FILES")) return true;
  return !minor.empty() && ::access(("/dev/nvidia" + minor).c_str(), R_OK | W_OK) == 0;
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
  const auto folder = DriverFolder();
  if (!folder) return {};
  std::vector<fs::path> gpus = Entries(*folder / "nvidia" / "gpus");
  std::sort(gpus.begin(), gpus.end());  // named by PCI bus, as nvidia-smi counts
  std::vector<Device> devices;
  for (const fs::path& gpu : gpus) {
    const auto text = ReadFile(gpu / "information");
    const std::string uuid = text ? Field(*text, "GPU UUID") : "";
    // One that cannot be told apart (the driver writes ?s for a GPU that it has not started yet)
    // is NVML's to name, and so are all, because the order counts.
    if (!uuid.starts_with("GPU-") || uuid.find('?') != std::string::npos) return {};
    if (Field(*text, "GPU Excluded") == "Yes" || !MayOpen(Field(*text, "Device Minor"))) continue;
    devices.push_back({true, uuid, static_cast<int>(devices.size()), Field(*text, "Model")});
  }
  return devices;
}

bool NobodyUsesCuda() {
  const auto folder = DriverFolder();
  if (!folder) return false;
  // CUDA's memory driver has an entry here for each GPU that a process has made a context on.
  std::error_code error;
  const fs::path in_use = *folder / "nvidia-uvm" / "gpus";
  return fs::is_directory(in_use, error) && fs::is_empty(in_use, error) && !error;
}

}  // namespace crucible
