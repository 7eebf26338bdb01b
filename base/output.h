// output.h: a program's results, where the person who asked for them wants them.
//
// Apart from files.h on purpose: a file that the program keeps for itself is replaced whatever lies
// at its path (an agent may have left a link there), while a path that a person typed means what it
// says.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace crucible {

// To the file that `path` names: at the end of a link, as a whole or not at all; into a device or a
// pipe that is there; kUsage on a folder.
Result<> WriteOutput(const std::filesystem::path& path, std::string_view text);

// The last thing of main(): the code to end with. Says so, and makes a success a failure, when
// stdout did not take all that was written (a full disk); a reader that has gone away (`| head`) is
// no failure.
int FinishOutput(int exit_code);

}  // namespace crucible
