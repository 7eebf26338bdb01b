// log_checks.h: whether an entry that a person adds can be true, before it is in the log for good.
// Private to the log's commands.
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "results_log/store.h"

namespace crucible {

// kUsage where the kind and the times contradict each other.
Result<> CheckTimes(const Entry& entry);

// Gives each file that is named as evidence its hash; kUsage for a kind that there is not, kNotFound
// for a file that is not there (looked for here, then in `home`, where the log lies).
Result<> SealEvidence(const std::filesystem::path& home, Entry* entry);

// kUsage for a target or case that neither the log knows nor, with `in_repository`, a target file
// above this folder. Where nothing is known yet, everything is let in.
Result<> CheckNames(Store* store, const Entry& entry, bool in_repository);

}  // namespace crucible
