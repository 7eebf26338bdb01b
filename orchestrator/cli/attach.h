// attach.h: follows an agent's transcript: what `crucible mission attach ID` prints.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "orchestrator/agents/cli/cli_stream.h"
#include "orchestrator/workspace.h"
#include "results_log/store.h"

namespace crucible {

// The rows of one transcript.jsonl, in order, as text for a person: each cut to a few lines,
// without what a terminal would obey. A command-line agent's rows are read by its program's format,
// which its first row names.
class TranscriptView {
 public:
  std::string Show(const std::string& row);

 private:
  std::string Start(const nlohmann::json& row);
  std::string Printed(const nlohmann::json& row, bool is_out);

  std::optional<CliStream> stream_;
};

struct AttachOptions {
  bool follow = true;    // false: what is there, and return
  bool as_json = false;  // the rows as they are, one JSON object a line, whole
};

// Prints what is there, then what comes, until the mission's agent has ended (at once when it has,
// or without `follow`) or `interrupted`. kNotFound: no such mission, or its agent writes no
// transcript.
Result<> Attach(Store* store, const Workspace& workspace, const std::string& id,
                const AttachOptions& options, const std::function<bool()>& interrupted,
                std::ostream& out, Clock& clock);

}  // namespace crucible
