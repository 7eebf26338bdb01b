// attach.h: follows an agent's transcript: what `crucible mission attach ID` prints.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "orchestrator/workspace.h"
#include "results_log/store.h"

namespace crucible {

// One row of transcript.jsonl for a person, cut to a few lines; the row as it is when it is no
// JSON.
std::string TranscriptText(const std::string& row);

// Prints what is there, then what comes, until the mission's agent has ended (at once when it has,
// or without `follow`) or `interrupted`. kNotFound: no such mission, or its agent writes no
// transcript.
Result<> Attach(Store* store, const Workspace& workspace, const std::string& id, bool follow,
                const std::function<bool()>& interrupted, std::ostream& out, Clock& clock);

}  // namespace crucible
