#include "base/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>

namespace crucible {
namespace {

// "crucible log query": the command whose --help lists what would have been right.
std::string InnermostCommand(const CLI::App& app) {
  std::string name = app.get_name();
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().back();
    name += " " + at->get_name();
  }
  return name;
}

// A command that does not exist is, to the library, one that is missing.
std::string Cause(const CLI::App& app, const std::vector<std::string>& words,
                  const CLI::ParseError& error) {
  const bool is_command = !words.empty() && !words.front().starts_with('-');
  if (app.get_require_subcommand_min() > 0 && app.get_subcommands().empty() && is_command)
    return "there is no command " + words.front();
  return error.what();
}

std::optional<double> NumberOf(const std::string& word) {
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

bool ParseWords(CLI::App* app, const std::vector<std::string>& words, std::ostream& out,
                std::ostream& err, int* exit_code) {
  // CLI11 takes its words last first.
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app->parse(reversed);
    return true;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      app->exit(error, out, err);
      *exit_code = 0;
      return false;
    }
    const std::string command = InnermostCommand(*app);
    err << command.substr(0, command.find(' ')) << ": read the words of `" << command
        << "`: " << Cause(*app, words, error) << "; `" << command
        << " --help` says which there are\n";
    *exit_code = 2;
    return false;
  }
}

std::string NumberAboveZero(const std::string& word) {
  const auto number = NumberOf(word);
  return number && *number > 0 ? "" : word + " is not a number above 0";
}

std::string NumberFromZero(const std::string& word) {
  const auto number = NumberOf(word);
  return number && *number >= 0 ? "" : word + " is not a number from 0 on";
}

bool ParseWords(CLI::App* app, int argc, char** argv, int* exit_code) {
  return ParseWords(app, {argv + 1, argv + argc}, std::cout, std::cerr, exit_code);
}

}  // namespace crucible
