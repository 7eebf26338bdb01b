// log_command.h: `crucible log …`: a person's hand on the results log.
//
// Words come without "log". Results go to `out` (--json: one JSON value), everything else to `err`;
// returns 0, 1 or 2 (usage). The log is --log FILE, else that of the repository the current
// directory lies in.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {

int LogCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

// What a command of the log needs to know of today: the log's own knowledge of `target` and `cases`
// (ConditionsFromLog over what the harness last said), then --now FIELD=VALUE on top.
Result<Conditions> ConditionsToday(Store* store, const std::string& target,
                                   const std::vector<std::string>& cases,
                                   const std::vector<std::string>& overrides);

// "name=value" words; kUsage names the word that is not one.
Result<std::vector<std::pair<std::string, std::string>>> NamedValues(
    const std::string& option, const std::vector<std::string>& words);

// The log named by --log, or the repository's.
Result<std::filesystem::path> LogFile(const std::string& given);

// `given`, where the log has anything of it or is empty; without one the only target of the log
// that has all of `cases`. Else kUsage.
Result<std::string> OnlyTarget(Store* store, const std::string& given,
                               const std::vector<std::string>& cases);

}  // namespace crucible
