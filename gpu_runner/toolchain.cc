#include "gpu_runner/toolchain.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "gpu_runner/driver_files.h"
#include "gpu_runner/nvml.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// 64 bits to tell toolchains apart, not to withstand anybody: starting OpenSSL for a SHA-256 would
// cost every job some milliseconds.
std::uint64_t Fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// `folder` first in a list of folders separated by colons, and nowhere else in it: a nested call
// must not make the list longer.
std::string WithFirst(const std::string& folder, const std::string& list) {
  std::string result = folder;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    const std::string item = list.substr(at, end - at);
    if (!item.empty() && item != folder) result += ":" + item;
    at = end + 1;
  }
  return result;
}

Result<std::string> VersionOutput(const fs::path& program, const std::string& profile) {
  const auto run = RunCaptured({.argv = {program.string(), "--version"}}, std::chrono::seconds(20));
  if (run && run->status.ok() && !run->timed_out) return run->out;
  return Fail(ErrorKind::kUsage, "use toolchain", profile,
              fmt::format("`{} --version` failed ({})", program.string(),
                          !run             ? run.error().text
                          : run->timed_out ? "no answer in 20 s"
                                           : run->status.Describe()),
              "repair the installation or the profile");
}

// The number behind "V" of "Cuda compilation tools, release 13.0, V13.0.48".
std::string NvccVersion(const std::string& output) {
  const std::size_t release = output.find("release ");
  const std::size_t at = release == std::string::npos ? release : output.find(", V", release);
  if (at == std::string::npos) return "";
  return output.substr(at + 3, output.find_first_not_of("0123456789.", at + 3) - at - 3);
}

Result<> ResolveCuda(Toolchain* toolchain) {
  const ToolchainProfile& profile = toolchain->profile;
  if (profile.cuda_root.empty()) return {};
  toolchain->nvcc = profile.cuda_root / "bin" / "nvcc";
  std::error_code ignored;
  if (!fs::exists(toolchain->nvcc, ignored))
    return Fail(ErrorKind::kUsage, "use toolchain", profile.name,
                "there is no " + toolchain->nvcc.string(),
                "correct cuda_root in " + profile.file.string());
  CRUCIBLE_ASSIGN(const std::string output, VersionOutput(toolchain->nvcc, profile.name));
  toolchain->nvcc_version = NvccVersion(output);
  if (toolchain->nvcc_version.empty())
    return Fail(ErrorKind::kUsage, "use toolchain", profile.name,
                toolchain->nvcc.string() + " --version tells no release", "is it NVIDIA's nvcc?");
  return {};
}

Result<> ResolveHostCompiler(Toolchain* toolchain) {
  const ToolchainProfile& profile = toolchain->profile;
  if (profile.host_compiler.empty()) return {};
  const auto found = FindExecutable(profile.host_compiler);
  if (!found)
    return Fail(ErrorKind::kUsage, "use toolchain", profile.name,
                "there is no host compiler " + profile.host_compiler,
                "install it, or correct host_compiler in " + profile.file.string());
  toolchain->host_compiler = *found;
  CRUCIBLE_ASSIGN(const std::string output, VersionOutput(*found, profile.name));
  toolchain->host_version = output.substr(0, output.find('\n'));
  return {};
}

std::string Capability(const Device& device, const Nvml* nvml) {
  const Nvml::Gpu* gpu = nvml != nullptr ? nvml->Find(device.id) : nullptr;
  return gpu != nullptr ? nvml->ComputeCapability(*gpu) : "";
}

// "90a" of a profile against "9.0" of a GPU. Code for sm_90 runs on 9.x from 9.0 up; code for
// sm_90a on 9.0 only.
bool ArchFits(const std::string& arch, const std::string& capability) {
  int wanted = 0, major = 0, minor = 0;
  const auto number = std::from_chars(arch.data(), arch.data() + arch.size(), wanted);
  const char* end = capability.data() + capability.size();
  const auto point = std::from_chars(capability.data(), end, major);
  if (number.ec != std::errc() || point.ec != std::errc() || point.ptr == end) return true;
  if (std::from_chars(point.ptr + 1, end, minor).ec != std::errc()) return true;
  const bool exact = number.ptr != arch.data() + arch.size();
  return wanted / 10 == major && (exact ? wanted % 10 == minor : wanted % 10 <= minor);
}

void SetEnvironment(Toolchain* toolchain) {
  const ToolchainProfile& profile = toolchain->profile;
  auto& set = toolchain->environment;
  set = {{kToolchainVariable, profile.name}, {kToolchainFileVariable, profile.file.string()}};
  if (!profile.cuda_root.empty()) {
    const std::string root = profile.cuda_root.string();
    set.insert(set.end(),
               {{"CUDA_HOME", root},
                {"CUDA_PATH", root},
                {"CUDAToolkit_ROOT", root},
                {"CUDACXX", toolchain->nvcc.string()},
                {"PATH", WithFirst(root + "/bin", Variable("PATH"))},
                {"LD_LIBRARY_PATH", WithFirst(root + "/lib64", Variable("LD_LIBRARY_PATH"))}});
  }
  if (!toolchain->host_compiler.empty()) {
    const std::string compiler = toolchain->host_compiler.string();
    set.insert(set.end(), {{"CXX", compiler}, {"CUDAHOSTCXX", compiler}, {"NVCC_CCBIN", compiler}});
  }
  if (!profile.arch.empty()) set.emplace_back("CUDAARCHS", profile.arch);
  set.insert(set.end(), profile.environment.begin(), profile.environment.end());
}

}  // namespace

Result<Toolchain> ResolveToolchain(const ToolchainProfile& profile) {
  Toolchain toolchain;
  toolchain.profile = profile;
  CRUCIBLE_TRY(ResolveCuda(&toolchain));
  CRUCIBLE_TRY(ResolveHostCompiler(&toolchain));
  SetEnvironment(&toolchain);
  return toolchain;
}

int CompareVersions(const std::string& a, const std::string& b) {
  std::size_t at_a = 0, at_b = 0;
  const auto next = [](const std::string& text, std::size_t* at) {
    long value = 0;
    const auto done = std::from_chars(text.data() + *at, text.data() + text.size(), value);
    *at = std::min(static_cast<std::size_t>(done.ptr - text.data()) + 1, text.size());
    return value;
  };
  while (at_a < a.size() || at_b < b.size()) {
    const long left = next(a, &at_a), right = next(b, &at_b);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

std::string WhyUnfit(const Toolchain& toolchain, const Device& device, const std::string& driver,
                     const std::string& capability) {
  const ToolchainProfile& profile = toolchain.profile;
  if (!device.is_gpu) return "";
  if (!profile.driver_min.empty() && !driver.empty() &&
      CompareVersions(driver, profile.driver_min) < 0)
    return fmt::format("the driver is {}, it needs {} or newer", driver, profile.driver_min);
  if (!profile.arch.empty() && !ArchFits(profile.arch, capability))
    return fmt::format("it builds for sm_{}, {} ({}) has compute capability {}", profile.arch,
                       device.id, device.name, capability);
  return "";
}

Result<> KeepFitting(const std::optional<Toolchain>& toolchain, const Nvml* nvml,
                     std::vector<Device>* devices) {
  if (!toolchain) return {};
  std::string why;
  std::erase_if(*devices, [&](const Device& device) {
    const std::string unfit =
        WhyUnfit(*toolchain, device, nvml != nullptr ? nvml->driver_version() : "",
                 Capability(device, nvml));
    if (!unfit.empty()) why = unfit;
    return !unfit.empty();
  });
  if (!devices->empty()) return {};
  return Fail(ErrorKind::kUnavailable, "use toolchain", toolchain->profile.name, why,
              "update the driver, or choose another device or profile");
}

std::string ToolchainJson(const std::optional<Toolchain>& toolchain, const Device& device,
                          const Nvml* nvml) {
  nlohmann::json json = {{"device", device.name}};
  std::string root = toolchain ? toolchain->profile.cuda_root.string() : "";
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  if (device.is_gpu) put("driver", nvml ? nvml->driver_version() : DriverVersionInFiles());
  if (toolchain) {
    put("compute_capability", Capability(device, nvml));  // NVML was asked, for the profile
    put("nvcc", toolchain->nvcc_version);
    put("host_compiler", toolchain->host_version);
    put("arch", toolchain->profile.arch);
    for (const auto& [name, value] : toolchain->profile.environment) json["env"][name] = value;
  } else {
    const std::string home = Variable("CUDA_HOME");
    const std::string cuda = home.empty() ? "/usr/local/cuda" : home;
    if (const auto text = ReadFile(cuda + "/version.json")) {
      const auto version = nlohmann::json::parse(*text, nullptr, false);
      if (version.is_object() && version.contains("cuda_nvcc")) {
        root = cuda;
        put("nvcc", version["cuda_nvcc"].value("version", ""));
      }
    }
  }
  const auto text = [&] {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const std::string fingerprint = fmt::format("{:016x}", Fnv1a(text()));
  json["fingerprint"] = fingerprint;
  // Beside the fingerprint: another kernel, name or folder of the same tools is the same toolchain,
  // and without a profile NVML may not have been asked; the device's name tells as much.
  put("compute_capability", Capability(device, nvml));
  if (toolchain) put("profile", toolchain->profile.name);
  put("cuda_root", root);
  if (utsname system{}; ::uname(&system) == 0) json["kernel"] = system.release;
  return text();
}

}  // namespace crucible
