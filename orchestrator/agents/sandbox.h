// sandbox.h: runs an agent's command where it can do no harm.
//
// By bubblewrap: no network, no GPU nodes, a read-only system without the home folder, secrets or
// other missions; the worktree and a scratch folder writable; the environment built from nothing; a
// PID namespace, so that nothing outlives the command. The only way to a device is the broker's
// socket (gpu_runner/broker.h), bound into the sandbox.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

struct SandboxSpec {
  std::filesystem::path worktree;                 // writable, and the current folder
  std::filesystem::path scratch;                  // writable; HOME and TMPDIR
  std::vector<std::filesystem::path> readable;    // bound read-only: programs, main's checkout
  std::filesystem::path broker_socket;            // empty: no device
  std::map<std::string, std::string> environment; // the whole of it, beside PATH, HOME, TMPDIR, LANG
};

// kUnavailable with the reason and the next step (install bubblewrap, or `--unsandboxed`) where it
// does not work; tried by really starting one.
Result<> SandboxWorks();

// `spec` rewritten so that its argv runs inside. Its directory must lie in the worktree.
Result<SubprocessSpec> Sandboxed(const SandboxSpec& sandbox, SubprocessSpec spec);

}  // namespace crucible
