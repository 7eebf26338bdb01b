// statement.h: one prepared SQLite statement, owned. Private to results_log.
#pragma once

#include <sqlite3.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace crucible {

// SQLite's "unable to open database file" does not say why; the disk and the folder do. Its own
// errno is of its last try, which is another one.
inline std::string WhyNotOpened(int code, const char* file) {
  if (code != SQLITE_CANTOPEN && code != SQLITE_IOERR) return "";
  if (file == nullptr || *file == '\0') return "";
  const std::string folder = std::filesystem::path(file).parent_path().string();
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) == 0 &&
      (disk.f_bavail == 0 || (disk.f_files != 0 && disk.f_favail == 0)))
    return std::string(" (") + std::strerror(ENOSPC) + ")";
  if (::access(folder.c_str(), W_OK) != 0) return std::string(" (") + std::strerror(errno) + ")";
  return "";
}

// Binds in order of the '?'s, then Step() until it gives false; columns are counted from 0.
class Statement {
 public:
  static Result<Statement> Prepare(sqlite3* database, std::string_view sql) {
    Statement statement(database);
    if (sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement.handle_,
                           nullptr) != SQLITE_OK)
      return statement.Problem("prepare a statement for");
    return statement;
  }
  Statement(Statement&& other) noexcept
      : database_(other.database_),
        handle_(std::exchange(other.handle_, nullptr)),
        next_(other.next_) {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(database_, other.database_);
    std::swap(handle_, other.handle_);
    std::swap(next_, other.next_);
    return *this;
  }
  ~Statement() { sqlite3_finalize(handle_); }

  Statement& Bind(std::string_view text) {
    sqlite3_bind_text(handle_, next_++, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(const char* text) { return Bind(std::string_view(text)); }
  Statement& Bind(const std::string& text) { return Bind(std::string_view(text)); }
  Statement& Bind(std::int64_t value) {
    sqlite3_bind_int64(handle_, next_++, value);
    return *this;
  }
  Statement& Bind(int value) { return Bind(static_cast<std::int64_t>(value)); }
  Statement& Bind(bool value) { return Bind(static_cast<std::int64_t>(value)); }
  Statement& Bind(double value) {
    sqlite3_bind_double(handle_, next_++, value);
    return *this;
  }
  template <class T>
  Statement& Bind(const std::optional<T>& value) {
    if (value) return Bind(*value);
    sqlite3_bind_null(handle_, next_++);
    return *this;
  }

  // True while there is a row.
  Result<bool> Step() {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return Problem("write or read");
  }
  Result<> Run() {
    CRUCIBLE_TRY(Step());
    return {};
  }

  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return text == nullptr
               ? std::string()
               : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
  }
  std::int64_t Integer(int column) const { return sqlite3_column_int64(handle_, column); }
  double Real(int column) const { return sqlite3_column_double(handle_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  std::optional<double> OptionalReal(int column) const {
    return IsNull(column) ? std::nullopt : std::optional(Real(column));
  }
  std::optional<std::int64_t> OptionalInteger(int column) const {
    return IsNull(column) ? std::nullopt : std::optional(Integer(column));
  }

 private:
  explicit Statement(sqlite3* database) : database_(database) {}

  tl::unexpected<Error> Problem(std::string_view action) const {
    const char* file = sqlite3_db_filename(database_, "main");
    const int code = sqlite3_errcode(database_);
    std::string_view next = "see that file's folder and disk";
    if (code == SQLITE_FULL) next = "free space on that disk and run the command again";
    if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN) next = "check the permissions";
    if (code == SQLITE_BUSY) next = "another process is writing; run the command again";
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      next = "it is no results log; move it away or name another with --log";
    const ErrorKind kind = code == SQLITE_NOTADB
                               ? ErrorKind::kUsage
                               : (code == SQLITE_BUSY ? ErrorKind::kConflict : ErrorKind::kIo);
    std::string cause = sqlite3_errmsg(database_);
    cause += WhyNotOpened(code, file);
    return Fail(kind, action, std::string("results log ") + (file == nullptr ? "" : file), cause,
                next);
  }

  sqlite3* database_ = nullptr;
  sqlite3_stmt* handle_ = nullptr;
  int next_ = 1;
};

}  // namespace crucible
