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

// Which of `gpus` the one word means: an index, a UUID or the beginning of one.
std::vector<std::size_t> Matching(const std::string& word, const std::vector<Device>& gpus) {
  int index = -1;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, index);
  const bool is_index = parsed.ec == std::errc() && parsed.ptr == end;
  std::vector<std::size_t> meant;
  for (std::size_t i = 0; i < gpus.size() && !word.empty(); ++i)
    if (is_index ? gpus[i].index == index : gpus[i].id.starts_with(word)) meant.push_back(i);
  return meant;
}

}  // namespace

std::vector<Device> ListDevices(Nvml* nvml) {
  std::vector<Device> devices{Cpu()};
  if (nvml != nullptr)
    for (const Nvml::Gpu& gpu : nvml->gpus())
      devices.push_back({true, gpu.uuid, gpu.index, gpu.name});
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
    std::vector<bool> wanted(gpus.size());
    for (std::size_t at = 0; at <= words.size();) {
      const std::size_t comma = std::min(words.find(',', at), words.size());
      const std::string word = words.substr(at, comma - at);
      const std::vector<std::size_t> meant = Matching(word, gpus);
      if (meant.size() != 1)
        return Fail(ErrorKind::kUsage, "find device", word.empty() ? "''" : word,
                    meant.empty() ? "there is none of that index or UUID" : "it fits several UUIDs",
                    "choose among: " + Known(all));
      wanted[meant.front()] = true;
      at = comma + 1;
    }
    std::vector<Device> chosen;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (wanted[i]) chosen.push_back(gpus[i]);
    gpus = std::move(chosen);
  }
  std::sort(gpus.begin(), gpus.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return gpus;
}

}  // namespace crucible
