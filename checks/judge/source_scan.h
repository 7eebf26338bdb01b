// source_scan.h: words that a kernel's source has no business with, as the target file states them.
//
// The first net, cheap and clear: it names the file, the line and why. What it cannot see (a word
// that a macro puts together) is met by the scan of the built library and at run time. Searched are
// all files that an agent may change, comments included, because telling them apart is what a cheat
// would play on; a line that ends in a backslash is one with the next. Pure over the files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checks/judge/verdict_report.h"
#include "checks/target.h"

namespace crucible::judge {

struct Finding {
  std::string file;  // relative to the source's root
  int line = 0;
  std::string word, why;
};

// kIo where a file cannot be read.
Result<std::vector<Finding>> ScanSource(const Target& target, const std::filesystem::path& source);

// The same as a row of a check, named "source"; passes where nothing is found.
CheckRow SourceRow(const Target& target, const std::filesystem::path& source);

}  // namespace crucible::judge
