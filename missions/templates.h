// templates.h: the mission templates (missions/templates/*.md), built into the program.
#pragma once

#include <string_view>

namespace crucible {

std::string_view MissionTemplate();                          // mission.md, with {{values}}
std::string_view SystemTemplate();                           // how an agent works with its tools
std::string_view PlannerTemplate();                          // how a planner model chooses
std::string_view CliTemplate();                              // tools of a command-line agent
std::string_view FlavourTemplate(std::string_view flavour);  // how to work; "" when unknown

}  // namespace crucible
