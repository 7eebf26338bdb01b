// toolchain.h: named sets of CUDA, host compiler and environment that a job runs under.
//
// `--toolchain cuda13` gives a job that CUDA root and that compiler whatever the caller's shell
// had, and its row a fingerprint, so that two results can be told to come from the same tools.
// Profiles are in a file of the user's (docs/gpu_run.md); nothing is searched or guessed. What a
// profile names is checked before the wait, so that a mistake never costs a turn. Any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu_runner/device.h"
#include "gpu_runner/options.h"

namespace crucible {

inline constexpr char kToolchainVariable[] = "CRUCIBLE_TOOLCHAIN";
inline constexpr char kToolchainFileVariable[] = "CRUCIBLE_TOOLCHAIN_FILE";

// As written in the file; empty: not said.
struct ToolchainProfile {
  std::string name;
  std::filesystem::path file, cuda_root;
  std::string driver_min;     // "580.65.06": the oldest driver it works with
  std::string host_compiler;  // a path, or a name in PATH
  std::string arch;           // "90a": the GPU architecture its builds are for
  std::vector<std::pair<std::string, std::string>> environment;
};

// What was found on this machine for a profile.
struct Toolchain {
  ToolchainProfile profile;
  std::filesystem::path nvcc, host_compiler;  // absolute; empty: not said
  std::string nvcc_version, host_version;     // "13.0.48", the first line of --version
  // For the job, on top of the caller's.
  std::vector<std::pair<std::string, std::string>> environment;
};

// `chosen`, else $CRUCIBLE_TOOLCHAIN_FILE, else $XDG_CONFIG_HOME/crucible/toolchains.toml.
std::filesystem::path ToolchainFile(const std::string& chosen);

// All profiles of a file, by name. kUsage names the file, the line and what is wrong there.
Result<std::vector<ToolchainProfile>> ReadToolchains(const std::filesystem::path& file);

// Checks what the profile names and asks the compilers for their versions.
Result<Toolchain> ResolveToolchain(const ToolchainProfile& profile);
Result<Toolchain> FindToolchain(const std::string& name, const std::filesystem::path& file);
// The one of the options, else of $CRUCIBLE_TOOLCHAIN, else none.
Result<std::optional<Toolchain>> ChosenToolchain(const RunOptions& options);

// Why it cannot be used on that device with that driver; empty: it can. The CPU fits every profile.
// `capability` is the GPU's, such as "9.0", or empty where the driver did not tell.
std::string WhyUnfit(const Toolchain& toolchain, const Device& device, const std::string& driver,
                     const std::string& capability);

// Leaves out the GPUs of a pool that the toolchain is not for; an error when none is left.
Result<> KeepFitting(const std::optional<Toolchain>& toolchain, const Nvml* nvml,
                     std::vector<Device>* devices);

// -1, 0 or 1, number by number: "580.9" < "580.65".
int CompareVersions(const std::string& a, const std::string& b);

// A job's tools as JSON: with a profile what that found, else what version.json in CUDA_HOME says;
// and over all of it a fingerprint, equal for equal tools, driver and kind of GPU.
std::string ToolchainJson(const std::optional<Toolchain>& toolchain, const Device& device,
                          const Nvml* nvml);

}  // namespace crucible
