#include "gpu_runner/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gpu_runner/nvml.h"

namespace crucible {
namespace {

Device Cpu() { return {false, "cpu", -1, "CPU"}; }

std::string Known(const std::vector<Device>& gpus) {
  std::string text = "cpu";
  for (const Device& gpu : gpus) text += fmt::format(", {} ({})", gpu.index, gpu.id);
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

std::vector<Device> GpusOf(const Nvml* nvml) {
  std::vector<Device> gpus;
  if (nvml != nullptr)
    for (const Nvml::Gpu& gpu : nvml->gpus()) gpus.push_back({true, gpu.uuid, gpu.index, gpu.name});
  return gpus;
}

std::vector<Device> ListDevices(const Nvml* nvml) {
  std::vector<Device> devices = GpusOf(nvml);
  devices.insert(devices.begin(), Cpu());
  return devices;
}

bool MayMeanGpu(const std::string& words) { return words != "cpu"; }

Result<std::vector<Device>> ResolveDevices(const std::string& words, std::vector<Device> gpus,
                                           const std::string& why_none) {
  if (words == "cpu") return std::vector<Device>{Cpu()};
  if (words.empty() && gpus.empty()) return std::vector<Device>{Cpu()};
  if (gpus.empty())
    return Fail(ErrorKind::kUnavailable, "find device", words,
                why_none.empty() ? "NVML lists no GPU on this machine" : why_none,
                why_none.empty() ? "use --device cpu" : "");
  if (!words.empty() && words != "any") {
    std::vector<bool> wanted(gpus.size());
    for (std::size_t at = 0; at <= words.size();) {
      const std::size_t comma = std::min(words.find(',', at), words.size());
      const std::string word = words.substr(at, comma - at);
      const std::vector<std::size_t> meant = Matching(word, gpus);
      if (meant.size() != 1)
        return Fail(ErrorKind::kUsage, "find device", word.empty() ? "''" : word,
                    meant.empty() ? "there is none of that index or UUID" : "it fits several UUIDs",
                    "choose among: " + Known(gpus));
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
