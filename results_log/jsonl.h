// jsonl.h: the log as JSON Lines that git can diff and merge.
//
// One object a line, `{"type":"entry",…}`, sorted by type, time and key, row numbers left out: the
// same log gives the same bytes. Importing is all or nothing and idempotent, so two logs that grew
// apart are merged by importing each into the other (docs/log_format.md, "Merging").
#pragma once

#include <string>
#include <string_view>

#include "results_log/store.h"

namespace crucible {

struct ExportOptions {
  bool events = false;  // the campaign's story too: long, and nobody diffs it
};

Result<std::string> ExportLines(Store* store, const ExportOptions& options = {});

struct ImportSummary {
  int entries = 0, missions = 0, campaigns = 0, points = 0, events = 0;  // new ones
  int known = 0;      // lines that were there already
  int differing = 0;  // entries there already with other words: the log's own were kept
};

// `name` is the file's, for messages. A bad line fails with "NAME:LINE" and nothing is written.
Result<ImportSummary> ImportLines(Store* store, std::string_view text, const std::string& name);

}  // namespace crucible
