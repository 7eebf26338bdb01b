#include "gpu_runner/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gpu_runner/nvml.h"

namespace crucible {
namespace {

Device Cpu() { return {false, "cpu", -1, "CPU"}; }

std::string Known(const std::vector<Device>& devices) {
  std::string text;
  for (const Device& device : devices) {
    if (!text.empty()) text += ", ";
    text += device.is_gpu ? fmt::format("{} ({})", device.index, device.id) : device.id;
  }
  return text;
}

}  // namespace

std::vector<Device> ListDevices(Nvml* nvml) {
  std::vector<Device> devices{Cpu()};
  if (nvml != nullptr)
    for (const Nvml::Gpu& gpu : nvml->gpus()) devices.push_back({true, gpu.uuid, gpu.index, gpu.name});
  return devices;
}

bool NeedsNvml(const std::string& words) { return words != "cpu"; }

Result<std::vector<Device>> ResolveDevices(const std::string& words, Nvml* nvml,
                                           const std::string& why_no_nvml) {
  if (words == "cpu") return std::vector<Device>{Cpu()};
  std::vector<Device> all = ListDevices(nvml);
  std::vector<Device> gpus = all;
  std::erase_if(gpus, [](const Device& device) { return !device.is_gpu; });
  if (words.empty() && gpus.empty()) return std::vector<Device>{Cpu()};
  if (gpus.empty())
    return Fail(ErrorKind::kUnavailable, "find device", words,
                why_no_nvml.empty() ? "NVML lists no GPU on this machine" : why_no_nvml,
                why_no_nvml.empty() ? "use --device cpu" : "");
  if (!words.empty() && words != "any") {
    int index = -1;
    const char* end = words.data() + words.size();
    const auto parsed = std::from_chars(words.data(), end, index);
    const bool is_index = parsed.ec == std::errc() && parsed.ptr == end;
    std::erase_if(gpus, [&](const Device& device) {
      return is_index ? device.index != index : !device.id.starts_with(words);
    });
    if (gpus.size() != 1)
      return Fail(ErrorKind::kUsage, "find device", words,
                  gpus.empty() ? "there is none of that index or UUID" : "it fits several UUIDs",
                  "choose one of: " + Known(all));
  }
  std::sort(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return gpus;
}

}  // namespace crucible
