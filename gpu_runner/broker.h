// broker.h: runs jobs for callers that may not touch a device themselves.
//
// A command in a sandbox has no GPU; its gpu_run asks here, over a Unix socket that nobody else
// reaches, and the job runs outside, through gpu_run and so in the same queue as everybody's, with
// the caller's own stdin, stdout and stderr. One broker a mission: its socket and its folders are
// that mission's alone. A caller that goes away takes its job with it. One thread a connection, at
// most `max_connections`; a caller that says nothing, or nonsense, holds up nobody else.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"

namespace crucible {

struct BrokerSpec {
  std::filesystem::path socket;              // in a folder of mode 0700, made when missing
  std::vector<std::filesystem::path> roots;  // a job's folder must lie in one of these
  std::filesystem::path gpu_run;             // the program
  // For gpu_run: CRUCIBLE_HOME, CRUCIBLE_MISSION... Of this process's own it gets PATH, HOME, LANG,
  // TMPDIR and where the locks are; never a key.
  std::map<std::string, std::string> environment;
  std::vector<std::string>
      forced_options;      // gpu_run's words that a caller cannot change, "--device"
  bool may_hurry = false;  // --priority high
  bool may_pin = false;    // --clocks pin
  // Puts a job (its argv, folder and the few variables that cross) into a sandbox with the device;
  // what comes back has no environment of its own. Empty: the job runs as it is. Called by the
  // connections' threads.
  std::function<Result<SubprocessSpec>(SubprocessSpec job)> sandbox;

  int max_connections = 16;
  int hello_ms = 5000;  // a caller that has not made its request by then is let go
  struct Peer {
    uid_t uid = 0;
    pid_t pid = 0;  // as seen from here
  };
  std::function<Result<Peer>(int socket)> peer_of;  // empty: SO_PEERCRED
};

class Broker {
 public:
  static Result<std::unique_ptr<Broker>> Start(BrokerSpec spec);
  // Ends the jobs (SIGTERM, then SIGKILL), then the threads.
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  const std::filesystem::path& socket() const;

 private:
  struct Impl;
  explicit Broker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace crucible
