#include "results_log/worst_rows.h"

#include "results_log/statement.h"

namespace crucible {

Result<> ReadWorst(sqlite3* database, Entry* entry) {
  if (entry->margins.empty()) return {};
  auto rows = Statement::Prepare(
      database, "SELECT gate, check_name, matrix, seed FROM entry_worst WHERE entry_id = ?");
  if (!rows && rows.error().text.find("no such table") != std::string::npos) return {};
  if (!rows) return tl::unexpected(rows.error());
  rows->Bind(entry->id);
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows->Step());
    if (!more) return {};
    const auto margin = entry->margins.find(rows->Text(0));
    if (margin == entry->margins.end()) continue;
    margin->second.check = rows->Text(1);
    margin->second.matrix = rows->Integer(2);
    margin->second.seed = rows->Integer(3);
  }
}

Result<> AddWorst(sqlite3* database, std::int64_t entry_id, const Entry& entry) {
  for (const auto& [gate, margin] : entry.margins) {
    if (!margin.known()) continue;
    CRUCIBLE_ASSIGN(Statement row,
                    Statement::Prepare(database, "INSERT INTO entry_worst VALUES (?, ?, ?, ?, ?)"));
    row.Bind(entry_id).Bind(gate).Bind(margin.check).Bind(margin.matrix).Bind(margin.seed);
    CRUCIBLE_TRY(row.Run());
  }
  return {};
}

}  // namespace crucible
