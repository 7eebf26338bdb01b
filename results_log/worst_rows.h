// worst_rows.h: the table entry_worst: which matrix each margin of an entry is of. For store.cc.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "results_log/entry.h"

struct sqlite3;

namespace crucible {

// A log that no program with this table has written to has none: nothing is read then.
Result<> ReadWorst(sqlite3* database, Entry* entry);
Result<> AddWorst(sqlite3* database, std::int64_t entry_id, const Entry& entry);

}  // namespace crucible
