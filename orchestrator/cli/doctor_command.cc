#include "orchestrator/cli/doctor_command.h"

#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/paths.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/doctor.h"

namespace crucible {
namespace {

const char* ToText(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kWarn ? "warn" : "FAIL";
}

}  // namespace

int DoctorCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Say what of the machine and the repository is ready", "crucible doctor");
  bool as_json = false;
  app.add_flag("--json", as_json, "Print JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const std::vector<Finding> findings =
      Examine(std::filesystem::current_path(), ProgramDirectory());
  if (as_json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings)
      list.push_back({{"health", ToText(finding.health)},
                      {"what", finding.what},
                      {"found", finding.found},
                      {"next", finding.next}});
    out << list.dump(2) << "\n";
  } else {
    for (const Finding& finding : findings)
      fmt::print(out, "{:<5} {:<18} {}{}{}\n", ToText(finding.health), finding.what, finding.found,
                 finding.next.empty() ? "" : " -> ", finding.next);
  }
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.health == Health::kFail; })
             ? 1
             : 0;
}

}  // namespace crucible
