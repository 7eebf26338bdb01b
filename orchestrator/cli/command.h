// command.h: what every subcommand of `crucible` shares.
//
// A command takes its words (without the program and its own name), writes results to `out` and
// everything else to `err`, and returns the exit code: 0, 1, 2 (usage), 130 (interrupted).
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "base/result.h"
#include "orchestrator/workspace.h"

namespace crucible {

using Words = std::vector<std::string>;

// --branch, for commands that take no campaign file: see Repository::Open.
void AddBranchOption(CLI::App* app, std::string* branch);

// Prints "crucible: TEXT" on err; the exit code of the error's kind.
int Report(const Error& error, std::ostream& err);

// The workspace of the repository that the current directory lies in.
Result<Workspace> FindWorkspace();

// "user:NAME" of the person at the keyboard.
std::string UserAuthor();

// Expands a target given as a file, or as a name of missions/targets/NAME.toml in the repository.
Result<std::filesystem::path> FindTargetFile(const std::string& name_or_file);

int CampaignCommand(const Words& words, std::ostream& out, std::ostream& err);
int MissionCommand(const Words& words, std::ostream& out, std::ostream& err);
int CheckCommand(const Words& words, std::ostream& out, std::ostream& err);
int CompareCommand(const Words& words, std::ostream& out, std::ostream& err);
int InitCommand(const Words& words, std::ostream& out, std::ostream& err);
int PlanCommand(const Words& words, std::ostream& out, std::ostream& err);
int AgentCommand(const Words& words, std::ostream& out, std::ostream& err);
int ProposeCommand(const Words& words, std::ostream& out, std::ostream& err);
int IntegrateCommand(const Words& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
