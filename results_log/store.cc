// store.cc: opening, transactions, entries. store_rows.cc has the other tables.
#include "results_log/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "results_log/schema_text.h"
#include "results_log/store_impl.h"
#include "results_log/worst_rows.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kVersion[] = "1";
constexpr int kBusyTimeoutMs = 10'000;

Result<sqlite3*> OpenDatabase(const std::filesystem::path& file, int flags,
                              const std::string& uri = "") {
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(uri.empty() ? file.c_str() : uri.c_str(), &database, flags, nullptr);
  if (code != SQLITE_OK) {
    const std::string cause = database != nullptr ? sqlite3_errmsg(database) : "out of memory";
    sqlite3_close(database);
    return Fail(ErrorKind::kIo, "open results log", file.string(), cause,
                "check the path and its permissions");
  }
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  return database;
}

// A place that cannot be written (a read-only mount) and a log that nobody writes, as no writer's
// file lies beside it: SQLite then reads the file alone, where it would else make files beside it.
Result<sqlite3*> OpenAsItStands(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string())
    uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02X}", c) : std::string(1, c);
  return OpenDatabase(file, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, uri + "?immutable=1");
}

bool CannotBeWritten(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  return ::access(folder.c_str(), W_OK) != 0 &&
         !std::filesystem::exists(file.string() + "-wal", ignored);
}

Result<> CheckVersion(const std::filesystem::path& file, const std::string& version) {
  if (version == kVersion) return {};
  return Fail(ErrorKind::kUsage, "open results log", file.string(),
              fmt::format("it has version {}, this program knows {}", version, kVersion),
              "use the newer program");
}

constexpr char kWalMode[] = "PRAGMA journal_mode = WAL";

// Tries `sql` until it is not refused for another's lock. The change of a new file's journal mode is
// refused at once, whatever the timeout, while another process makes the same file.
void WaitUntilFree(sqlite3* database, const char* sql) {
  constexpr int kRetryMs = 10;
  for (int waited_ms = 0; waited_ms < kBusyTimeoutMs; waited_ms += kRetryMs) {
    if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_BUSY) return;
    sqlite3_sleep(kRetryMs);
  }
}

constexpr char kEntryColumns[] =
    "id, key, kind, time_ms, target, campaign, mission, author, flavour, mechanism, hypothesis, "
    "summary, reason, change, conditions, evidence, margins, landed, conflated, supersedes, "
    "split_from";

constexpr std::size_t kMostCandidates = 8;  // named where a prefix fits several entries

// "e3 (d5c1….m1.1), e4 (d5c1….m1.2)": what a prefix may have meant.
std::string Candidates(const std::vector<Entry>& entries) {
  std::string text;
  for (std::size_t i = 0; i < entries.size() && i < kMostCandidates; ++i)
    text += fmt::format("{}e{} ({})", i == 0 ? "" : ", ", entries[i].id, entries[i].key);
  return text + (entries.size() > kMostCandidates ? ", …" : "");
}

Entry ReadEntry(const Statement& row) {
  Entry entry;
  int column = 0;
  entry.id = row.Integer(column++);
  entry.key = row.Text(column++);
  entry.kind = EntryKindFromText(row.Text(column++)).value_or(EntryKind::kNote);
  entry.time_ms = row.Integer(column++);
  for (std::string* field :
       {&entry.target, &entry.campaign, &entry.mission, &entry.author, &entry.flavour,
        &entry.mechanism, &entry.hypothesis, &entry.summary, &entry.reason, &entry.change})
    *field = row.Text(column++);
  const json conditions = json::parse(row.Text(column++), nullptr, false);
  if (conditions.is_object()) conditions.get_to(entry.conditions);
  const json evidence = json::parse(row.Text(column++), nullptr, false);
  if (evidence.is_array())
    for (const json& item : evidence)
      entry.evidence.push_back(
          {item.value("kind", ""), item.value("ref", ""), item.value("sha256", "")});
  const json margins = json::parse(row.Text(column++), nullptr, false);
  if (margins.is_object())
    for (const auto& [gate, value] : margins.items()) entry.margins[gate] = value.get<double>();
  entry.landed = row.Integer(column++) != 0;
  entry.conflated = row.Integer(column++) != 0;
  entry.supersedes = row.Text(column++);
  entry.split_from = row.Text(column++);
  return entry;
}

Result<> ReadCases(sqlite3* database, Entry* entry) {
  CRUCIBLE_ASSIGN(Statement rows,
                  Statement::Prepare(database,
                                     "SELECT name, role, verdict, before_us, after_us, ratio, "
                                     "ratio_low, ratio_high, rounds FROM entry_cases "
                                     "WHERE entry_id = ? ORDER BY position"));
  rows.Bind(entry->id);
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) return {};
    entry->cases.push_back({rows.Text(0), rows.Text(1), rows.Text(2), rows.OptionalReal(3),
                            rows.OptionalReal(4), rows.OptionalReal(5), rows.OptionalReal(6),
                            rows.OptionalReal(7), rows.OptionalInteger(8)});
  }
}

// The parts of an entry that are rows of other tables.
Result<> ReadParts(sqlite3* database, Entry* entry) {
  CRUCIBLE_TRY(ReadCases(database, entry));
  return ReadWorst(database, entry);
}

// One value for an IN list or an equality; what a filter is made of.
struct Where {
  std::string sql;
  std::vector<std::string> values;

  void Add(const std::string& condition, const std::vector<std::string>& bound) {
    sql += (sql.empty() ? " WHERE " : " AND ") + condition;
    values.insert(values.end(), bound.begin(), bound.end());
  }
  void Equal(const char* column, const std::string& value) {
    if (!value.empty()) Add(fmt::format("{} = ?", column), {value});
  }
};

std::string Marks(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

Where WhereOf(const EntryFilter& filter) {
  Where where;
  if (!filter.cases.empty())
    where.Add(fmt::format("id IN (SELECT entry_id FROM entry_cases WHERE name IN ({}))",
                          Marks(filter.cases.size())),
              filter.cases);
  if (!filter.kinds.empty()) {
    std::vector<std::string> kinds;
    for (const EntryKind kind : filter.kinds) kinds.emplace_back(ToText(kind));
    where.Add(fmt::format("kind IN ({})", Marks(kinds.size())), kinds);
  }
  where.Equal("target", filter.target);
  where.Equal("campaign", filter.campaign);
  where.Equal("mission", filter.mission);
  where.Equal("mechanism", filter.mechanism);
  where.Equal("author", filter.author);
  if (!filter.text.empty())
    where.Add(
        "instr(lower(mechanism || ' ' || hypothesis || ' ' || summary || ' ' || reason), "
        "lower(?)) > 0",
        {filter.text});
  if (filter.since_ms) where.Add(fmt::format("time_ms >= {}", *filter.since_ms), {});
  if (!filter.superseded)
    where.Add(
        "key NOT IN (SELECT supersedes FROM entries WHERE supersedes != '') AND key NOT IN "
        "(SELECT split_from FROM entries WHERE split_from != '')",
        {});
  return where;
}

}  // namespace

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::Open(const std::filesystem::path& file) {
  if (file.has_parent_path()) CRUCIBLE_TRY(MakeDirectories(file.parent_path()));
  CRUCIBLE_ASSIGN(sqlite3* const database,
                  OpenDatabase(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  auto impl = std::make_unique<Impl>(database);
  WaitUntilFree(database, kWalMode);
  CRUCIBLE_TRY(impl->Execute(kWalMode));
  CRUCIBLE_TRY(impl->Execute("PRAGMA synchronous = NORMAL"));
  CRUCIBLE_TRY(impl->Execute("PRAGMA foreign_keys = ON"));
  Store store(std::move(impl));
  CRUCIBLE_TRY(store.InTransaction([&]() -> Result<> {
    CRUCIBLE_TRY(store.impl_->Execute(kSchemaText));
    CRUCIBLE_ASSIGN(const std::string version, store.Meta("version"));
    if (version.empty()) return store.SetMeta("version", kVersion);
    return CheckVersion(file, version);
  }));
  return store;
}

Result<Store> Store::OpenReadOnly(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return Fail(ErrorKind::kNotFound, "open results log", file.string(), "there is none yet",
                "`crucible init` makes one, `crucible campaign launch FILE` fills it");
  // Opened for writing where that is allowed: a reader of a WAL database may have to make the
  // shared-memory file. Nothing is written through it.
  CRUCIBLE_ASSIGN(sqlite3* const database, CannotBeWritten(file)
                                               ? OpenAsItStands(file)
                                               : OpenDatabase(file, SQLITE_OPEN_READWRITE));
  auto impl = std::make_unique<Impl>(database);
  CRUCIBLE_TRY(impl->Execute("PRAGMA query_only = ON"));
  Store store(std::move(impl));
  const auto version = store.Meta("version");
  if (!version) {
    // A process that was killed while it made the file leaves one without tables.
    if (version.error().text.find("no such table") != std::string::npos)
      return Fail(ErrorKind::kNotFound, "open results log", file.string(),
                  "it has no tables: its making was cut off, or it is another database",
                  "`crucible init` completes it");
    return tl::unexpected(version.error());
  }
  CRUCIBLE_TRY(CheckVersion(file, *version));
  return store;
}

Result<> Store::Begin() {
  if (impl_->depth++ > 0) return {};
  const auto begun = impl_->Execute("BEGIN IMMEDIATE");
  if (!begun) --impl_->depth;
  return begun;
}

Result<> Store::Commit() {
  CRUCIBLE_CHECK(impl_->depth > 0, "a commit ends a transaction");
  if (impl_->depth > 1) {
    --impl_->depth;
    return {};
  }
  const auto committed = impl_->Execute("COMMIT");
  if (!committed) (void)impl_->Execute("ROLLBACK");
  impl_->depth = 0;
  return committed;
}

void Store::Rollback() {
  CRUCIBLE_CHECK(impl_->depth > 0, "a rollback ends a transaction");
  if (--impl_->depth == 0) (void)impl_->Execute("ROLLBACK");
}

Result<std::int64_t> Store::AddEntry(const Entry& given, bool* fresh) {
  Entry entry = given;
  if (entry.key.empty()) entry.key = "e." + RandomHex(8);
  std::int64_t id = 0;
  CRUCIBLE_TRY(InTransaction([&]() -> Result<> {
    CRUCIBLE_ASSIGN(Statement known, impl_->Prepare("SELECT id FROM entries WHERE key = ?"));
    known.Bind(entry.key);
    CRUCIBLE_ASSIGN(const bool there, known.Step());
    if (fresh != nullptr) *fresh = !there;
    if (there) {
      id = known.Integer(0);
      return {};
    }
    json evidence = json::array(), margins = json::object();
    for (const auto& [gate, margin] : entry.margins) margins[gate] = margin.value;
    for (const Evidence& item : entry.evidence)
      evidence.push_back({{"kind", item.kind}, {"ref", item.ref}, {"sha256", item.sha256}});
    CRUCIBLE_ASSIGN(Statement row,
                    impl_->Prepare(fmt::format("INSERT INTO entries ({}) VALUES (NULL, {})",
                                               kEntryColumns, Marks(20))));
    row.Bind(entry.key).Bind(ToText(entry.kind)).Bind(entry.time_ms).Bind(entry.target);
    row.Bind(entry.campaign).Bind(entry.mission).Bind(entry.author).Bind(entry.flavour);
    row.Bind(entry.mechanism).Bind(entry.hypothesis).Bind(entry.summary).Bind(entry.reason);
    row.Bind(entry.change.empty() ? std::string("{}") : entry.change);
    row.Bind(JsonText(entry.conditions)).Bind(JsonText(evidence)).Bind(JsonText(margins));
    row.Bind(entry.landed).Bind(entry.conflated).Bind(entry.supersedes).Bind(entry.split_from);
    CRUCIBLE_TRY(row.Run());
    id = sqlite3_last_insert_rowid(impl_->database);
    for (std::size_t i = 0; i < entry.cases.size(); ++i) {
      const CaseResult& result = entry.cases[i];
      CRUCIBLE_ASSIGN(Statement item,
                      impl_->Prepare("INSERT INTO entry_cases VALUES (" + Marks(11) + ")"));
      item.Bind(id).Bind(static_cast<std::int64_t>(i)).Bind(result.name).Bind(result.role);
      item.Bind(result.verdict).Bind(result.before_us).Bind(result.after_us).Bind(result.ratio);
      item.Bind(result.ratio_low).Bind(result.ratio_high).Bind(result.rounds);
      CRUCIBLE_TRY(item.Run());
    }
    return AddWorst(impl_->database, id, entry);
  }));
  return id;
}

Result<int> Store::AddEntries(const std::vector<Entry>& entries) {
  int added = 0;
  CRUCIBLE_TRY(InTransaction([&]() -> Result<> {
    for (const Entry& entry : entries) {
      bool fresh = false;
      CRUCIBLE_TRY(AddEntry(entry, &fresh));
      added += fresh;
    }
    return {};
  }));
  return added;
}

Result<Entry> Store::FindEntry(const std::string& key_or_id) {
  const bool numbered = key_or_id.size() > 1 && key_or_id[0] == 'e' &&
                        key_or_id.find_first_not_of("0123456789", 1) == std::string::npos;
  const bool plain =
      !key_or_id.empty() && key_or_id.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t id =
      numbered || plain ? std::strtoll(key_or_id.c_str() + (numbered ? 1 : 0), nullptr, 10) : -1;
  CRUCIBLE_ASSIGN(Statement rows, impl_->Prepare(fmt::format(
                                      "SELECT {} FROM entries WHERE key = ?1 OR id = ?2 OR "
                                      "(length(?1) >= 6 AND substr(key, 1, length(?1)) = ?1) "
                                      "ORDER BY key = ?1 DESC, id = ?2 DESC, id LIMIT {}",
                                      kEntryColumns, kMostCandidates + 1)));
  rows.Bind(key_or_id);
  rows.Bind(id);
  std::vector<Entry> found;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) break;
    found.push_back(ReadEntry(rows));
  }
  if (found.empty())
    return Fail(ErrorKind::kNotFound, "find entry", key_or_id,
                "the log has none of that key or number", "`crucible log query` lists them");
  Entry& entry = found.front();
  if (found.size() > 1 && entry.key != key_or_id && entry.id != id)
    return Fail(ErrorKind::kUsage, "find entry", key_or_id,
                "several keys begin so: " + Candidates(found), "give one of these numbers");
  CRUCIBLE_TRY(ReadParts(impl_->database, &entry));
  return std::move(entry);
}

Result<std::vector<Entry>> Store::QueryEntries(const EntryFilter& filter) {
  const Where where = WhereOf(filter);
  CRUCIBLE_ASSIGN(Statement rows,
                  impl_->Prepare(fmt::format(
                      "SELECT {} FROM entries{} ORDER BY {}", kEntryColumns, where.sql,
                      filter.limit > 0 ? fmt::format("time_ms DESC, id DESC LIMIT {}", filter.limit)
                                       : std::string("time_ms, id"))));
  for (const std::string& value : where.values) rows.Bind(value);
  std::vector<Entry> entries;
  for (;;) {
    CRUCIBLE_ASSIGN(const bool more, rows.Step());
    if (!more) break;
    entries.push_back(ReadEntry(rows));
  }
  for (Entry& entry : entries) CRUCIBLE_TRY(ReadParts(impl_->database, &entry));
  return entries;
}

Result<> Store::MarkLanded(const std::string& key) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare("UPDATE entries SET landed = 1 WHERE key = ?"));
  row.Bind(key);
  return row.Run();
}

Result<> Store::MarkConflated(const std::string& key, bool conflated) {
  CRUCIBLE_ASSIGN(Statement row, impl_->Prepare("UPDATE entries SET conflated = ? WHERE key = ?"));
  row.Bind(conflated).Bind(key);
  return row.Run();
}

}  // namespace crucible
