// sandbox.h: runs an agent's command where it can do no harm.
//
// By bubblewrap: no network (unless asked for), no GPU nodes, a read-only system without the home folder, secrets or
// other missions; the worktree and a scratch folder writable; the environment built from nothing; a
// PID namespace, so that nothing outlives the command. The only way to a device is the broker's
// socket (gpu_runner/broker.h), bound into the sandbox.
//
// Git works for reading (status, diff, log of the own branch): the worktree's own metadata and the
// object store are bound read-only, other branches' names and the repository's configuration are
// not. Objects are shared, so what another mission has committed is no secret to who guesses ids.
// A signal to the command ends the sandbox at once (SIGKILL inside): there is no polite stop.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

struct SandboxSpec {
  std::filesystem::path worktree;               // writable, and the current folder
  std::filesystem::path scratch;                // writable; HOME and TMPDIR
  std::vector<std::filesystem::path> readable;  // bound read-only: programs, main's checkout
  std::filesystem::path programs;               // stands first in PATH; readable names it, too
  std::filesystem::path broker_socket;          // empty: no device
  std::filesystem::path tools_socket;           // of McpSocket; empty: no tools of the mission
  bool network = false;                         // the machine's, with what finds and trusts servers
  // The whole of it, beside PATH, HOME, TMPDIR and LANG.
  std::map<std::string, std::string> environment;
  bool devices = false;                // the GPUs' nodes, for a job that gpu_run started with one
  std::vector<std::string> inherited;  // names whose values come from the start's own environment
};

// Where a sandbox finds the broker's socket; CRUCIBLE_BROKER says so.
inline constexpr char kSandboxBroker[] = "/run/crucible/broker";
// … and the mission's tools (McpSocket).
inline constexpr char kSandboxTools[] = "/run/crucible/tools";

// PATH inside: `programs` (empty: none), then the system's.
std::string SandboxPath(const std::filesystem::path& programs);

// kUnavailable with the reason and the next step (install bubblewrap, or `--unsandboxed`) where it
// does not work; tried by really starting one.
Result<> SandboxWorks();

// `spec` rewritten so that its argv runs inside. Its directory (empty: the worktree) must lie in
// the worktree; its own environment is added to the sandbox's. kUsage when a folder is the system's
// root or holds the home folder, kNotFound when one is missing. Thread-safe.
Result<SubprocessSpec> Sandboxed(const SandboxSpec& sandbox, SubprocessSpec spec);

// The same for a job that the mission's broker runs through gpu_run: with the device that
// gpu_run chose, and with the broker's socket, so that a gpu_run inside the job runs at once.
Result<SubprocessSpec> SandboxedJob(SandboxSpec sandbox, SubprocessSpec job);

}  // namespace crucible
