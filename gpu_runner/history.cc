#include "gpu_runner/history.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/paths.h"
#include "gpu_runner/jobs_sql.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kBusyMs = 10'000;
// Who opens the file while nobody else has it open reads all of its write-ahead log, so that a long
// one costs every job milliseconds; a short one costs a sync of the disk more often: here one in
// about thirty jobs. The log must be emptied: a plain checkpoint is forgotten with the last
// connection, and every job after it would do it again.
constexpr int kMaxLogPages = 250;
constexpr char kColumns[] =
    "id, device, argv, directory, mission, priority, queued_ms, started_ms, ended_ms, exit_code, "
    "signal, outcome, nonce, runner, log_path, toolchain, clocks, drift";

// A repository's .crucible is no part of the repository: `git status` need not show it.
void HideFromGit(const fs::path& home) {
  std::error_code ignored;
  if (home.filename() == ".crucible" && !fs::exists(home / ".gitignore", ignored))
    (void)WriteFileAtomically(home / ".gitignore", "*\n");
}

// A prepared statement, finalised on every path.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool valid() const { return statement_ != nullptr; }
  void Bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void Bind(std::int64_t value) { sqlite3_bind_int64(statement_, ++bound_, value); }
  template <class T>
  void Bind(const std::optional<T>& value) {
    value ? Bind(std::int64_t{*value}) : (void)sqlite3_bind_null(statement_, ++bound_);
  }
  void BindOrNull(const std::string& text) {
    text.empty() ? (void)sqlite3_bind_null(statement_, ++bound_) : Bind(text);
  }
  int Step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }

  std::string Text(int column) const {
    const auto* text = sqlite3_column_text(statement_, column);
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }
  std::int64_t Number(int column) const { return sqlite3_column_int64(statement_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

std::string ArgvText(const std::vector<std::string>& argv) { return JsonText(Json(argv)); }

std::vector<std::string> ArgvOf(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  std::vector<std::string> argv;
  if (json.is_array())
    for (const Json& word : json)
      if (word.is_string()) argv.push_back(word);
  return argv;
}

JobRow RowOf(const Statement& from) {
  JobRow row;
  row.id = from.Text(0);
  row.device = from.Text(1);
  row.argv = ArgvOf(from.Text(2));
  row.directory = from.Text(3);
  row.mission = from.Text(4);
  row.priority = from.Text(5);
  row.queued_ms = from.Number(6);
  if (!from.IsNull(7)) row.started_ms = from.Number(7);
  if (!from.IsNull(8)) row.ended_ms = from.Number(8);
  if (!from.IsNull(9)) row.exit_code = static_cast<int>(from.Number(9));
  if (!from.IsNull(10)) row.signal = static_cast<int>(from.Number(10));
  row.outcome = from.Text(11);
  row.nonce = from.Text(12);
  row.runner = from.Text(13);
  row.log_path = from.Text(14);
  row.toolchain = from.Text(15);
  row.clocks = from.Text(16);
  row.drift = from.Text(17);
  return row;
}

void BindRow(const JobRow& row, Statement* to) {
  to->Bind(row.id);
  to->Bind(row.device);
  to->Bind(ArgvText(row.argv));
  to->Bind(row.directory);
  to->Bind(row.mission);
  to->Bind(row.priority);
  to->Bind(row.queued_ms);
  to->Bind(row.started_ms);
  to->Bind(row.ended_ms);
  to->Bind(row.exit_code);
  to->Bind(row.signal);
  to->BindOrNull(row.outcome);
  to->Bind(row.nonce);
  to->Bind(row.runner);
  to->Bind(row.log_path);
  to->Bind(row.toolchain);
  to->Bind(row.clocks);
  to->Bind(row.drift);
}

constexpr char kEighteen[] = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

}  // namespace

JobRow RowOf(const HolderRecord& record) {
  JobRow row;
  row.id = record.job;
  row.device = record.device;
  row.argv = record.argv;
  row.directory = record.directory;
  row.mission = record.mission;
  row.priority = record.priority;
  row.queued_ms = record.queued_ms;
  row.started_ms = record.started_ms;
  row.nonce = record.nonce;
  row.runner = ToText(record.runner);
  row.log_path = record.log_path;
  return row;
}

fs::path HistoryFile(const fs::path& directory) {
  if (const auto home = CrucibleHome(directory)) return *home / "log.sqlite";
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = state != nullptr && *state == '/' ? fs::path(state)
                        : home != nullptr && *home == '/' ? fs::path(home) / ".local/state"
                                                          : fs::path("/tmp");
  return base / "crucible" / "log.sqlite";
}

fs::path HistoryFileHere() {
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);
  return HistoryFile(here.empty() ? fs::path("/nonexistent") : here);
}

Result<History> History::Open(const fs::path& file) {
  CRUCIBLE_TRY(MakeDirectories(file.parent_path()));
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  History history(database);
  if (code != SQLITE_OK) return history.Failure("open");
  sqlite3_busy_timeout(database, kBusyMs);
  // A checkpoint at each close would sync the disk for each job; see kMaxLogPages.
  sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // The log's own table is the sign that a writer before us has done this: reading is cheaper.
  if (Statement known(database, "SELECT drift FROM jobs LIMIT 0"); known.valid()) {
    sqlite3_exec(database, "PRAGMA synchronous=NORMAL", nullptr, nullptr, nullptr);
    return history;
  }
  const std::string sql = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE; " +
                          std::string(kJobsSql) + " COMMIT;";
  // Two that set a new file to WAL at once do not wait for each other: the second tries again.
  for (int tries = 0; tries < 200; ++tries) {
    if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
      HideFromGit(file.parent_path());
      return history;
    }
    if (sqlite3_errcode(database) != SQLITE_BUSY) break;
    sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
    sqlite3_sleep(10);
  }
  return history.Failure("create the jobs table in");
}

History::History(History&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
History& History::operator=(History&& other) noexcept {
  std::swap(database_, other.database_);
  return *this;
}
History::~History() { sqlite3_close(database_); }

tl::unexpected<Error> History::Failure(const char* action) const {
  const char* file = database_ != nullptr ? sqlite3_db_filename(database_, "main") : nullptr;
  return Fail(ErrorKind::kIo, action, file != nullptr ? file : "the job history",
              sqlite3_errmsg(database_), "the job itself is not affected; check the file");
}

Result<> History::Put(const JobRow& row) {
  Statement put(database_,
                fmt::format("INSERT OR REPLACE INTO jobs ({}) VALUES {}", kColumns, kEighteen));
  if (!put.valid()) return Failure("write a job to");
  BindRow(row, &put);
  int pages = 0;
  const auto note = [](void* to, sqlite3*, const char*, int now) {
    *static_cast<int*>(to) = now;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(database_, note, &pages);
  const int code = put.Step();
  sqlite3_wal_hook(database_, nullptr, nullptr);
  if (code != SQLITE_DONE) return Failure("write a job to");
  if (row.outcome.empty() || pages < kMaxLogPages) return {};
  // The device has been let go: nobody waits for the disk now but this call. If another process is
  // writing, its own end will do it.
  sqlite3_busy_timeout(database_, 0);
  sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(database_, kBusyMs);
  return {};
}

Result<> History::PutLost(const HolderRecord& dead, std::int64_t now_ms) {
  JobRow row = crucible::RowOf(dead);
  row.ended_ms = now_ms;
  row.outcome = "lost";
  // A runner killed between the job's end and the release had completed its row: that one is right.
  Statement put(database_,
                fmt::format("INSERT INTO jobs ({}) VALUES {} ON CONFLICT(id) DO UPDATE SET "
                            "outcome = 'lost', ended_ms = excluded.ended_ms, "
                            "started_ms = excluded.started_ms WHERE outcome IS NULL",
                            kColumns, kEighteen));
  if (!put.valid()) return Failure("write a lost job to");
  BindRow(row, &put);
  if (put.Step() != SQLITE_DONE) return Failure("write a lost job to");
  return {};
}

Result<int> History::SweepLost(std::int64_t now_ms) {
  std::vector<std::string> dead;
  {
    Statement open(database_, "SELECT id, runner FROM jobs WHERE outcome IS NULL");
    if (!open.valid()) return Failure("read open jobs of");
    while (open.Step() == SQLITE_ROW)
      if (!IsAlive(ProcessIdentityFromText(open.Text(1)))) dead.push_back(open.Text(0));
  }
  for (const std::string& id : dead) {
    Statement lose(
        database_,
        "UPDATE jobs SET outcome = 'lost', ended_ms = ? WHERE id = ? AND outcome IS NULL");
    lose.Bind(now_ms);
    lose.Bind(id);
    if (lose.Step() != SQLITE_DONE) return Failure("complete a lost job in");
  }
  return static_cast<int>(dead.size());
}

Result<std::vector<JobRow>> History::Select(const std::string& where, const std::string& argument,
                                            int count) {
  Statement select(database_,
                   fmt::format("SELECT {} FROM jobs {} ORDER BY queued_ms DESC, id LIMIT {}",
                               kColumns, where, count));
  if (!select.valid()) return Failure("read");
  if (!argument.empty()) select.Bind(argument);
  std::vector<JobRow> rows;
  int code = 0;
  while ((code = select.Step()) == SQLITE_ROW) rows.push_back(RowOf(select));
  if (code != SQLITE_DONE) return Failure("read");
  return rows;
}

Result<std::vector<JobRow>> History::Recent(int count) { return Select("", "", count); }

Result<std::optional<JobRow>> History::Find(const std::string& id) {
  CRUCIBLE_ASSIGN(std::vector<JobRow> rows, Select("WHERE id = ?", id, 1));
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

}  // namespace crucible
