// conditions.h: under what an entry was measured, and which of it has changed since.
//
// Conditions are a flat map of named facts. A rejection is up for a retest when one of the fields
// that matter differs today, and the field is named: "compiler: gcc 12.2 -> gcc 13.1".
#pragma once

#include <map>
#include <string>
#include <vector>

namespace crucible {

using Conditions = std::map<std::string, std::string>;

// Field names in use: "compiler", "driver", "device" (GPU or CPU model), "clock" (pinned, unlocked,
// unknown), "kernel_generation" (hash of the kernel's sources for the shapes, *as measured
// against*: the base, not the candidate), "protocol" (of the harness), "judge_protocol" (the rules
// of decision), "harness", "threads", "margins" (the gates' limits). Others are
// kept and shown, but their change is no reason for a retest ("host", "seed", "kernel").
bool MattersForRetest(const std::string& field);

struct ChangedCondition {
  std::string field, then, now;
};

// The mattering fields known in both that differ, in the order of their names. One that was or is
// "unknown" says nothing of a change.
std::vector<ChangedCondition> ChangedSince(const Conditions& then, const Conditions& now);

}  // namespace crucible
