// case_text.h: what came of one case or gate, in words: the log's rows and the brief's lines say it
// alike.
#pragma once

#include <string>

#include "results_log/entry.h"

namespace crucible {

// "n32 100 us -> 110 us (+10.0 %)", with `whole` also its interval and rounds inside. The ratio is
// the paired one: where the machine drifted, the medians of the two sides can say the opposite, and
// then the text says which is which.
std::string CaseText(const CaseResult& result, bool whole);

// "0.8125 (dense n=32 batch=3, matrix 1, seed 17)": what is needed to make the matrix again.
std::string MarginText(const Margin& margin);

}  // namespace crucible
