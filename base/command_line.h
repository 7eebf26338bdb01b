// command_line.h: a program's words, parsed, with mistakes told in the project's own form.
//
// The library's texts say what is wrong but neither what was being done nor what to do next. Every
// program and every command goes through here, so that all of them answer alike. Thread-safe.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace crucible {

// Parses the words that follow the app's name ("crucible log"). False when they are answered
// already, and then *exit_code is set: 0 after --help (on `out`), 2 after a mistake (one error on
// `err`, naming the innermost command that was understood).
bool ParseWords(CLI::App* app, const std::vector<std::string>& words, std::ostream& out,
                std::ostream& err, int* exit_code);

// The same for main().
bool ParseWords(CLI::App* app, int argc, char** argv, int* exit_code);

// Checks for options that take a number: "" or what to write instead (the library's own texts print
// the whole range of the type).
std::string NumberAboveZero(const std::string& word);
std::string NumberFromZero(const std::string& word);

}  // namespace crucible
