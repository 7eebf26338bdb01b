// brief.h: what an agent is told before it starts: the log, compiled for exactly its shapes.
//
// Pure over its input rows: no clock, no disk, so the same log and conditions give the same bytes.
// Every line cites its entry ("[e12]"). Within the token budget the sections are cut from the least
// important end, and the cut is said.
#pragma once

#include <string>
#include <vector>

#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {

struct BriefInput {
  std::string target;
  std::vector<std::string> cases;  // the shapes asked for; empty: all of the target
  std::vector<Entry> entries;      // oldest first
  std::vector<Point> points;
  Conditions now;                     // today's conditions; unknown fields are left out
  std::vector<std::string> commands;  // the measuring commands to quote
  int token_budget = 4000;            // about 4 characters a token
};

// Markdown, sections in this order: records and floor; what holds and why; rejected under today's
// conditions (do not retry); up for a retest and why; conflated entries; asserted floors to
// challenge; open leads (notes, inconclusive results); commands.
std::string CompileBrief(const BriefInput& input);

}  // namespace crucible
