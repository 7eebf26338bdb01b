// log_options.h: what `crucible log` was asked, and the function that answers each of its commands
// (log_read.cc, log_write.cc). Private to those files and log_command.cc.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "results_log/entry.h"

namespace crucible {

// What the options leave behind; one set for all of the commands.
struct LogOptions {
  std::string log, id, kind, target, campaign, mission, mechanism, author, text, file;
  Entry entry;
  std::optional<double> before_us, after_us;
  std::vector<std::string> cases, kinds, conditions, evidence, files, now, parts;
  std::optional<int> limit;  // of query; 0: all
  bool as_json = false, superseded = false, events = false;
};

// Each prints its results on `out`, remarks on `err`, and returns the exit code.
using LogAction = Result<int> (*)(const LogOptions& options, std::ostream& out, std::ostream& err);

Result<int> AddToLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> ImportToLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> SplitInLog(const LogOptions& options, std::ostream& out, std::ostream& err);

Result<int> ShowOfLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> QueryLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> ExportLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> RetestsOfLog(const LogOptions& options, std::ostream& out, std::ostream& err);
Result<int> RecordsOfLog(const LogOptions& options, std::ostream& out, std::ostream& err);

}  // namespace crucible
