// case_text.h: what came of one case, in words: the log's rows and the brief's lines say it alike.
#pragma once

#include <string>

#include "results_log/entry.h"

namespace crucible {

// "n32 100 us -> 110 us (+10.0 %)", with `whole` also its interval and rounds inside. The ratio is
// the paired one: where the machine drifted, the medians of the two sides can say the opposite, and
// then the text says which is which.
std::string CaseText(const CaseResult& result, bool whole);

}  // namespace crucible
