// The profiles' file: see toolchain.h, and docs/gpu_run.md for an example.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/files.h"
#include "base/toml_mistake.h"
#include "gpu_runner/toolchain.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr char kKeys[] = "cuda_root, driver_min, host_compiler, arch, env";
// gpu_run's own: a profile that set them would break turns or send a job to another device.
constexpr const char* kReserved[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PATH",
                                     "LD_LIBRARY_PATH"};

class Reader {
 public:
  explicit Reader(fs::path file) : file_(std::move(file)) {}

  tl::unexpected<Error> Wrong(const toml::node& where, const std::string& what,
                              const std::string& instead) const {
    return Fail(ErrorKind::kUsage, "read toolchains",
                fmt::format("{}:{}", file_.string(), where.source().begin.line), what, instead);
  }

  Result<std::string> Text(const std::string& key, const toml::node& node) const {
    if (const auto text = node.value_exact<std::string>(); text && !text->empty()) return *text;
    return Wrong(node, "'" + key + "' is not a text", "write " + key + " = \"...\"");
  }

  Result<> Environment(const toml::node& node, ToolchainProfile* profile) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) return Wrong(node, "'env' is not a table", "write env.NAME = \"value\"");
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      const auto text = value.value_exact<std::string>();
      if (!text) return Wrong(value, "env." + name + " is not a text", "put it in quotes");
      if (name.empty() || name.find('=') != std::string::npos)
        return Wrong(value, "env." + name + " is no name of a variable", "remove the '='");
      if (name.starts_with("CRUCIBLE_") || std::count(kReserved, std::end(kReserved), name) > 0)
        return Wrong(value, "env." + name + " is set by gpu_run itself",
                     "leave it out; cuda_root already comes first in PATH and LD_LIBRARY_PATH");
      profile->environment.emplace_back(name, *text);
    }
    return {};
  }

  Result<ToolchainProfile> Profile(const std::string& name, const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return Wrong(node, "'" + name + "' is not a table",
                   "write [" + name + "] and its keys below");
    ToolchainProfile profile;
    profile.name = name;
    profile.file = file_;
    for (const auto& [key_node, value] : *table) {
      const std::string key(key_node.str());
      if (key == "env") {
        CRUCIBLE_TRY(Environment(value, &profile));
        continue;
      }
      CRUCIBLE_ASSIGN(const std::string text, Text(key, value));
      if (key == "cuda_root") {
        profile.cuda_root = text;
        if (!profile.cuda_root.is_absolute())
          return Wrong(value, "cuda_root = \"" + text + "\" is not absolute",
                       "jobs run in any directory: write the whole path");
      } else if (key == "driver_min") {
        profile.driver_min = text;
        if (text.find_first_not_of("0123456789.") != std::string::npos)
          return Wrong(value, "driver_min = \"" + text + "\" is no version",
                       "write it as nvidia-smi does: \"580.65.06\"");
      } else if (key == "host_compiler") {
        profile.host_compiler = text;
      } else if (key == "arch") {
        profile.arch = text.starts_with("sm_") ? text.substr(3) : text;
        if (profile.arch.size() < 2 ||
            std::isdigit(static_cast<unsigned char>(profile.arch[0])) == 0)
          return Wrong(value, "arch = \"" + text + "\" is no architecture", "write \"90a\"");
      } else {
        return Wrong(value, "there is no key '" + key + "'", std::string("it takes ") + kKeys);
      }
    }
    return profile;
  }

 private:
  fs::path file_;
};

}  // namespace

fs::path ToolchainFile(const std::string& chosen) {
  if (!chosen.empty()) return fs::absolute(chosen);
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const std::string file = variable(kToolchainFileVariable); !file.empty()) return file;
  const std::string config = variable("XDG_CONFIG_HOME");
  const fs::path base =
      config.starts_with('/') ? fs::path(config) : fs::path(variable("HOME")) / ".config";
  return base / "crucible" / "toolchains.toml";
}

Result<std::vector<ToolchainProfile>> ReadToolchains(const fs::path& file) {
  const auto text = ReadFile(file);
  if (!text)
    return Fail(ErrorKind::kUsage, "read toolchains", file.string(), "there is no such file",
                "write one (see docs/gpu_run.md), or name it with --toolchain-file");
  std::vector<ToolchainProfile> profiles;
  try {
    const toml::table table = toml::parse(*text);
    const Reader reader(file);
    for (const auto& [name, node] : table) {
      CRUCIBLE_ASSIGN(ToolchainProfile profile, reader.Profile(std::string(name.str()), node));
      profiles.push_back(std::move(profile));
    }
  } catch (const toml::parse_error& error) {
    return TomlMistake("read toolchains", file.string(), *text, error,
                       "docs/gpu_run.md shows such a file");
  }
  return profiles;
}

Result<Toolchain> FindToolchain(const std::string& name, const fs::path& file) {
  CRUCIBLE_ASSIGN(const std::vector<ToolchainProfile> profiles, ReadToolchains(file));
  std::string known;
  for (const ToolchainProfile& profile : profiles) {
    if (profile.name == name) return ResolveToolchain(profile);
    known += (known.empty() ? "" : ", ") + profile.name;
  }
  return Fail(ErrorKind::kUsage, "use toolchain", name,
              "there is none of that name in " + file.string(),
              known.empty() ? "the file has no profile" : "it has " + known);
}

Result<std::optional<Toolchain>> ChosenToolchain(const RunOptions& options) {
  const char* variable = std::getenv(kToolchainVariable);
  const std::string name = !options.toolchain.empty() ? options.toolchain
                           : variable != nullptr      ? variable
                                                      : "";
  if (name.empty()) return std::nullopt;
  return FindToolchain(name, ToolchainFile(options.toolchain_file));
}

}  // namespace crucible
