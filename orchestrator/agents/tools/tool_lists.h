// tool_lists.h: each topic adds its tools to the set. Private to this folder. A tool holds a
// pointer to the session, which the set owns (see make_tools.cc).
#pragma once

#include <memory>

#include "orchestrator/agents/tools/session.h"

namespace crucible {

using SharedSession = std::shared_ptr<Session>;

void AddReadTools(const SharedSession& session, ToolSet* tools);  // read_file, list_files
void AddSearchTool(const SharedSession& session, ToolSet* tools);
void AddEditTools(const SharedSession& session, ToolSet* tools);       // edit_file, write_file
void AddCommandTool(const SharedSession& session, ToolSet* tools);     // run_command
void AddMeasureTools(const SharedSession& session, ToolSet* tools);    // build, check, compare
void AddLogTools(const SharedSession& session, ToolSet* tools);        // brief, log_query
void AddExperimentTool(const SharedSession& session, ToolSet* tools);  // log_experiment
void AddEndTools(const SharedSession& session, ToolSet* tools);  // note, commit, restore, report

}  // namespace crucible
