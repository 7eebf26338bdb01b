// broker_job.h: what a broker makes of a request: a gpu_run to start, or a reason to refuse.
#pragma once

#include "base/fd.h"
#include "gpu_runner/broker.h"
#include "gpu_runner/broker_message.h"

namespace crucible {

struct BrokerJob {
  SubprocessSpec spec;
  UniqueFd folder;     // spec.directory goes through it: a folder checked cannot be exchanged
  std::string device;  // the caller's words, for nested calls
};

// `roots` are real paths. The streams become the job's; the caller keeps owning them.
Result<BrokerJob> PrepareBrokerJob(const BrokerSpec& spec,
                                   const std::vector<std::filesystem::path>& roots,
                                   const BrokerRequest& request, const Streams& streams);

}  // namespace crucible
