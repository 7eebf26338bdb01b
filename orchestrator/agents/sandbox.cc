#include "orchestrator/agents/sandbox.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "orchestrator/agents/memory_file.h"
#include "orchestrator/agents/sandbox_git.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr char kPath[] = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin";
constexpr char kTmpBytes[] = "4294967296";
constexpr int kFirstDescriptor = 60;

// What of /etc a compiler, a linker or a script may ask for; none of it is a secret.
constexpr const char* kEtc[] = {"alternatives", "group",     "ld.so.cache",   "ld.so.conf",
                                "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd"};

// How servers are found and trusted, for a sandbox with the network.
constexpr const char* kEtcOfNetwork[] = {"ca-certificates",
                                         "ca-certificates.conf",
                                         "crypto-policies",
                                         "gai.conf",
                                         "host.conf",
                                         "hosts",
                                         "pki",
                                         "protocols",
                                         "resolv.conf",
                                         "services",
                                         "ssl"};

void Add(Words* words, std::initializer_list<std::string> more) {
  words->insert(words->end(), more.begin(), more.end());
}

// The system's own files in /proc ask for the user id of root and for no capability: read-only.
void CoverProc(Words* words) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator("/proc", ignored)) {
    const std::string name = item.path().filename().string();
    const fs::file_status status = item.symlink_status(ignored);
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 || fs::is_symlink(status)) continue;
    constexpr fs::perms kWrite =
        fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    if (fs::is_directory(status) || (status.permissions() & kWrite) != fs::perms::none)
      Add(words, {"--ro-bind-try", item.path().string(), item.path().string()});
  }
}

// The namespaces, and a system that can be read.
Words SystemWords(const fs::path& bwrap, bool without_user_namespaces) {
  Words words{bwrap.string(),  "--unshare-all", "--unshare-user", "--die-with-parent",
              "--new-session", "--clearenv",    "--cap-drop",     "ALL",
              "--hostname",    "sandbox",       "--ro-bind",      "/usr",
              "/usr"};
  if (without_user_namespaces) words.push_back("--disable-userns");
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code missing;
    if (fs::is_symlink(name, missing))
      Add(&words, {"--symlink", fs::read_symlink(name, missing).string(), name});
    else if (fs::is_directory(name, missing))
      Add(&words, {"--ro-bind", name, name});
  }
  for (const char* name : kEtc) {
    const std::string path = std::string("/etc/") + name;
    Add(&words, {"--ro-bind-try", path, path});
  }
  Add(&words, {"--ro-bind-try", "/opt/nvidia", "/opt/nvidia"});  // Nsight Compute
  Add(&words, {"--proc", "/proc", "--dev", "/dev", "--size", kTmpBytes, "--tmpfs", "/tmp"});
  return words;
}

struct Probe {
  Result<> works;
  fs::path bwrap;
  bool without_user_namespaces = true;
};

tl::unexpected<Error> NoSandbox(std::string_view cause) {
  return Fail(ErrorKind::kUnavailable, "start sandbox", "", cause,
              "install bubblewrap and allow user namespaces, or pass --unsandboxed to run agents "
              "without one");
}

Probe TryOne() {
  Probe probe;
  const auto found = FindExecutable("bwrap");
  if (!found) {
    probe.works = NoSandbox("the program bwrap is not on PATH");
    return probe;
  }
  probe.bwrap = *found;
  // An old bubblewrap, or a sandbox in a container, may not be able to forbid further namespaces.
  for (const bool without : {true, false}) {
    Words words = SystemWords(probe.bwrap, without);
    CoverProc(&words);
    Add(&words, {"--", "/bin/true"});
    const auto run = RunCaptured({.argv = words}, std::chrono::seconds(20));
    if (run && run->status.ok()) {
      probe.works = {};
      probe.without_user_namespaces = without;
      return probe;
    }
    probe.works =
        NoSandbox(run ? "bwrap: " + run->err.substr(0, run->err.find('\n')) : run.error().text);
  }
  return probe;
}

const Probe& TheProbe() {
  static const Probe probe = TryOne();
  return probe;
}

enum class How { kRead, kWrite, kHideFolder, kHideFile };

struct Mount {
  fs::path path;
  How how;
};

bool Holds(const fs::path& folder, const fs::path& path) {
  const auto ends = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return ends.first == folder.end();
}

// The real path of a folder that may be shown to an agent.
Result<fs::path> Presentable(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error)
    return Fail(ErrorKind::kNotFound, "bind into sandbox", folder.string(), error.message(),
                "check the path");
  const char* home = std::getenv("HOME");
  std::error_code ignored;
  const fs::path real_home = home != nullptr ? fs::canonical(home, ignored) : fs::path();
  if (real == "/" || (!real_home.empty() && Holds(real, real_home)))
    return Fail(ErrorKind::kUsage, "bind into sandbox", real.string(),
                "it holds the home folder, and with it keys and other projects",
                "name the folder that is needed itself");
  return real;
}

Result<> AddReadable(const fs::path& folder, std::vector<Mount>* mounts) {
  CRUCIBLE_ASSIGN(const fs::path real, Presentable(folder));
  mounts->push_back({real, How::kRead});
  // A checkout's state and metadata belong to everybody; see SandboxGit for what of it is shown.
  for (const char* name : {".crucible", ".git"}) {
    std::error_code ignored;
    if (fs::is_directory(real / name, ignored))
      mounts->push_back({real / name, How::kHideFolder});
    else if (fs::exists(real / name, ignored))
      mounts->push_back({real / name, How::kHideFile});
  }
  return {};
}

void AddMounts(std::vector<Mount> mounts, Words* words) {
  // A folder before what lies in it, whoever asked for it.
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const Mount& a, const Mount& b) { return a.path < b.path; });
  for (const Mount& mount : mounts) {
    const std::string path = mount.path.string();
    switch (mount.how) {
      case How::kRead:
        Add(words, {"--ro-bind", path, path});
        break;
      case How::kWrite:
        Add(words, {"--bind", path, path});
        break;
      case How::kHideFolder:
        Add(words, {"--tmpfs", path});
        break;
      case How::kHideFile:
        Add(words, {"--ro-bind", "/dev/null", path});
        break;
    }
  }
}

void AddDevices(Words* words) {
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator("/dev", ignored)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with("nvidia") || name == "dri")
      Add(words, {"--dev-bind-try", item.path().string(), item.path().string()});
  }
  Add(words, {"--ro-bind-try", "/sys", "/sys"});  // CUDA reads the machine's shape there
}

// The network with it, keys and devices without.
void AddNetwork(Words* words) {
  Add(words, {"--share-net"});
  for (const char* name : kEtcOfNetwork) {
    const std::string path = std::string("/etc/") + name;
    Add(words, {"--ro-bind-try", path, path});
  }
}

bool IsName(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// bwrap itself must start without the caller's environment: inside, /proc/1/environ shows it.
Result<Words> CleanStart(const std::vector<std::string>& inherited) {
  if (inherited.empty()) return Words{"/usr/bin/env", "-i"};
  std::string script = "exec /usr/bin/env -i";
  for (const std::string& name : inherited) {
    if (!IsName(name))
      return Fail(ErrorKind::kUsage, "inherit into sandbox", name, "no name of a variable");
    script += " ${" + name + "+\"" + name + "=$" + name + "\"}";
  }
  return Words{"/bin/sh", "-c", script + " \"$@\"", "sandbox"};
}

}  // namespace

std::string SandboxPath(const fs::path& programs) {
  return programs.empty() ? kPath : programs.string() + ":" + kPath;
}

Result<> SandboxWorks() { return TheProbe().works; }

Result<SubprocessSpec> Sandboxed(const SandboxSpec& sandbox, SubprocessSpec spec) {
  CRUCIBLE_CHECK(!spec.argv.empty(), "a sandbox needs a command");
  const Probe& probe = TheProbe();
  CRUCIBLE_TRY(probe.works);
  CRUCIBLE_ASSIGN(const fs::path worktree, Presentable(sandbox.worktree));
  std::error_code error;
  const fs::path directory =
      spec.directory.empty() ? worktree : fs::canonical(spec.directory, error);
  if (error || !Holds(worktree, directory))
    return Fail(ErrorKind::kUsage, "run in sandbox in", spec.directory.string(),
                error ? error.message() : "it is not in the worktree " + worktree.string(),
                "choose a folder of the worktree");

  std::vector<Mount> mounts{{worktree, How::kWrite}};
  std::map<std::string, std::string> environment{{"PATH", SandboxPath(sandbox.programs)},
                                                 {"HOME", "/tmp"},
                                                 {"TMPDIR", "/tmp"},
                                                 {"LANG", "C.UTF-8"}};
  if (!sandbox.scratch.empty()) {
    CRUCIBLE_ASSIGN(const fs::path scratch, Presentable(sandbox.scratch));
    mounts.push_back({scratch, How::kWrite});
    environment["HOME"] = environment["TMPDIR"] = scratch.string();
  }
  for (const fs::path& folder : sandbox.readable) CRUCIBLE_TRY(AddReadable(folder, &mounts));
  CRUCIBLE_ASSIGN(const SandboxGit git, GitForSandbox(worktree));
  for (const fs::path& path : git.read_only) mounts.push_back({path, How::kRead});

  CRUCIBLE_ASSIGN(Words words, CleanStart(sandbox.inherited));
  for (std::string& word : SystemWords(probe.bwrap, probe.without_user_namespaces))
    // What was inherited is all there is already, and has to stay.
    if (word != "--clearenv" || sandbox.inherited.empty()) words.push_back(std::move(word));
  if (sandbox.network) AddNetwork(&words);
  CoverProc(&words);
  if (sandbox.devices)
    AddDevices(&words);
  else
    Add(&words, {"--remount-ro", "/proc"});  // all of it; CUDA, though, writes to its own
  AddMounts(std::move(mounts), &words);
  int number = kFirstDescriptor;
  for (const auto& [path, text] : git.files) {
    CRUCIBLE_ASSIGN(UniqueFd file, MemoryFile(text));
    Add(&words, {"--file", std::to_string(number), path.string()});
    spec.descriptors.emplace_back(number++, file.get());
    spec.kept.push_back(std::make_shared<const UniqueFd>(std::move(file)));
  }
  if (!sandbox.broker_socket.empty()) {
    Add(&words, {"--bind", sandbox.broker_socket.string(), kSandboxBroker});
    environment["CRUCIBLE_BROKER"] = kSandboxBroker;
  }
  if (!sandbox.tools_socket.empty())
    Add(&words, {"--bind", sandbox.tools_socket.string(), kSandboxTools});
  Add(&words, {"--remount-ro", "/", "--chdir", directory.string()});
  for (const auto& [name, value] : git.environment) environment[name] = value;
  for (const auto& [name, value] : sandbox.environment) environment[name] = value;
  for (const auto& [name, value] : spec.environment) environment[name] = value;
  for (const auto& [name, value] : environment) Add(&words, {"--setenv", name, value});
  words.push_back("--");
  words.insert(words.end(), spec.argv.begin(), spec.argv.end());
  spec.argv = std::move(words);
  spec.environment.clear();
  spec.directory = worktree;
  return spec;
}

Result<SubprocessSpec> SandboxedJob(SandboxSpec sandbox, SubprocessSpec job) {
  sandbox.devices = true;
  // What gpu_run sets once it is the job's turn; not its token, which proves nothing from inside.
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CRUCIBLE_JOB_ID",
                           "CRUCIBLE_JOB_NONCE", "CRUCIBLE_SM_CLOCK_MHZ"})
    sandbox.inherited.emplace_back(name);
  return Sandboxed(sandbox, std::move(job));
}

}  // namespace crucible
