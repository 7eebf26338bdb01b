// harness_process.h: one running harness and its two descriptors (docs/target_protocol.md).
//
// Requests and replies are JSON Lines, one at a time. Every failure to answer — it ended, it is
// silent past the limit, it wrote something else — is an error that names the request and quotes
// the harness's last words; the process is then killed and answers nothing more. Its stdout and
// stderr go to a log file, never to this program's stdout, where the verdict is printed. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/subprocess.h"

namespace crucible::judge {

class HarnessProcess {
 public:
  // Errors here are of the machine or the target file (no such program), not of the kernel.
  static Result<HarnessProcess> Start(const std::vector<std::string>& command,
                                      const std::filesystem::path& log, Clock& clock);

  // The reply, an object with a boolean "ok". kTimeout: silent past the limit; kInternal: it ended
  // or wrote something else.
  Result<nlohmann::json> Ask(const nlohmann::json& request, std::int64_t limit_ms);

  // Says goodbye, then ends it.
  void Stop();

 private:
  HarnessProcess(Subprocess process, UniqueFd requests, UniqueFd replies, std::filesystem::path log,
                 Clock& clock)
      : process_(std::move(process)),
        requests_(std::move(requests)),
        replies_(std::move(replies)),
        log_(std::move(log)),
        clock_(&clock) {}

  Result<> Send(const std::string& line, const std::string& op);
  Result<std::string> ReadLine(std::int64_t limit_ms, const std::string& op);
  tl::unexpected<Error> Broken(ErrorKind kind, const std::string& op, const std::string& cause);
  std::string LastWords() const;

  Subprocess process_;
  UniqueFd requests_, replies_;
  std::filesystem::path log_;
  Clock* clock_;
  std::string buffer_;
  bool broken_ = false;
};

}  // namespace crucible::judge
