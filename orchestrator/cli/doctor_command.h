// doctor_command.h: crucible doctor: what of the machine and the repository is ready.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace crucible {

// Exit code 1 when something a campaign needs is missing. With --exploits: runs the cheating
// kernels of a target instead, and 1 when one got through.
int DoctorCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err);

}  // namespace crucible
