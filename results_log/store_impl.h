// store_impl.h: the open database, shared by the store's source files. Private to results_log.
#pragma once

#include <fmt/format.h>

#include "results_log/statement.h"
#include "results_log/store.h"

namespace crucible {

struct Store::Impl {
  explicit Impl(sqlite3* opened) : database(opened) {}
  ~Impl() { sqlite3_close_v2(database); }

  Result<Statement> Prepare(std::string_view sql) { return Statement::Prepare(database, sql); }
  // Many statements at once, no results.
  Result<> Execute(const char* sql) {
    char* message = nullptr;
    const int code = sqlite3_exec(database, sql, nullptr, nullptr, &message);
    if (code == SQLITE_OK) return {};
    std::string cause = message != nullptr ? message : sqlite3_errmsg(database);
    sqlite3_free(message);
    cause += WhyNotOpened(code, sqlite3_db_filename(database, "main"));
    const bool foreign = code == SQLITE_NOTADB;
    return Fail(foreign ? ErrorKind::kUsage : ErrorKind::kIo, "use results log",
                sqlite3_db_filename(database, "main"), cause,
                foreign               ? "it is no results log: move it away or name another"
                : code == SQLITE_BUSY ? "another process is writing; run the command again"
                                      : "check that disk's space and the file's permissions");
  }

  sqlite3* database;
  int depth = 0;  // nested transactions are one
};

}  // namespace crucible
