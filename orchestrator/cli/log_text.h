// log_text.h: an entry of the log as people and programs read it. Pure; thread-safe.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "results_log/store.h"

namespace crucible {

std::string Dump(const nlohmann::json& value);           // indented; what is no UTF-8 is replaced
nlohmann::json WithId(const Entry& entry);               // with its row number, "e12" in citations
std::string Row(const Entry& entry);                     // one line
void PrintEntry(const Entry& entry, std::ostream& out);  // whole

}  // namespace crucible
