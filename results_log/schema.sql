-- schema.sql: the results log, one SQLite file (.crucible/log.sqlite, WAL). Times are Unix
-- milliseconds UTC; durations microseconds. docs/log_format.md explains every column.
-- The table `jobs` (the runner's history) is created by gpu_runner/jobs.sql in the same file.

CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('win','loss','null','inconclusive','refused','crashed','note','floor')),
  time_ms INTEGER NOT NULL,
  target TEXT NOT NULL DEFAULT '', campaign TEXT NOT NULL DEFAULT '', mission TEXT NOT NULL DEFAULT '',
  author TEXT NOT NULL DEFAULT '', flavour TEXT NOT NULL DEFAULT '',
  mechanism TEXT NOT NULL DEFAULT '', hypothesis TEXT NOT NULL DEFAULT '',
  summary TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '',
  change TEXT NOT NULL DEFAULT '{}',
  conditions TEXT NOT NULL DEFAULT '{}', evidence TEXT NOT NULL DEFAULT '[]', margins TEXT NOT NULL DEFAULT '{}',
  landed INTEGER NOT NULL DEFAULT 0, conflated INTEGER NOT NULL DEFAULT 0,
  supersedes TEXT NOT NULL DEFAULT '', split_from TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX IF NOT EXISTS entries_by_mission ON entries (mission);
CREATE INDEX IF NOT EXISTS entries_by_kind ON entries (target, kind);

CREATE TABLE IF NOT EXISTS entry_cases (
  entry_id INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL, role TEXT NOT NULL, verdict TEXT NOT NULL,
  before_us REAL, after_us REAL, ratio REAL, ratio_low REAL, ratio_high REAL, rounds INTEGER,
  PRIMARY KEY (entry_id, position)
) STRICT;
CREATE INDEX IF NOT EXISTS entry_cases_by_name ON entry_cases (name);

-- Which matrix a margin of an entry is of; a log of an earlier program gets the table when it is
-- opened for writing.
CREATE TABLE IF NOT EXISTS entry_worst (
  entry_id INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
  gate TEXT NOT NULL, check_name TEXT NOT NULL, matrix INTEGER NOT NULL, seed INTEGER NOT NULL,
  PRIMARY KEY (entry_id, gate)
) STRICT;

CREATE TABLE IF NOT EXISTS campaigns (
  name TEXT PRIMARY KEY, target TEXT NOT NULL, file TEXT NOT NULL, settings TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running','paused','stopping','finished','stopped','interrupted')),
  owner TEXT NOT NULL DEFAULT '',          -- process identity of the orchestrator, '' when none
  started_ms INTEGER NOT NULL, ended_ms INTEGER, deadline_ms INTEGER,
  base_commit TEXT NOT NULL, phase TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE IF NOT EXISTS missions (
  id TEXT PRIMARY KEY,                     -- m1, m2, …: unique in this log
  campaign TEXT NOT NULL, target TEXT NOT NULL, flavour TEXT NOT NULL,
  goal TEXT NOT NULL, cases TEXT NOT NULL, -- JSON list of names
  settings TEXT NOT NULL DEFAULT '{}',     -- budget, seed, agent, knobs in scope: JSON object
  state TEXT NOT NULL CHECK (state IN ('planned','preparing','running','ended','merging','done')),
  outcome TEXT NOT NULL DEFAULT '',        -- candidate, no_change, pivot, blocked, budget, crashed, stopped
  merge_outcome TEXT NOT NULL DEFAULT '',  -- landed, conflict, check_failed, ratchet_failed, not_faster, …
  owner TEXT NOT NULL DEFAULT '',          -- process identity of the agent
  branch TEXT NOT NULL DEFAULT '', worktree TEXT NOT NULL DEFAULT '',
  base_commit TEXT NOT NULL DEFAULT '', best_commit TEXT NOT NULL DEFAULT '', merge_commit TEXT NOT NULL DEFAULT '',
  report TEXT NOT NULL DEFAULT '', spend TEXT NOT NULL DEFAULT '{}',
  planned_ms INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER
) STRICT;

-- One measured point of a case: what the dashboard's bars and the records are made of.
CREATE TABLE IF NOT EXISTS points (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT NOT NULL, case_name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('main','peer','floor')),
  name TEXT NOT NULL DEFAULT '',           -- main: the commit; peer: its name; floor: what it is computed from
  time_ms INTEGER NOT NULL,
  median_us REAL NOT NULL, low_us REAL, high_us REAL,
  record INTEGER NOT NULL DEFAULT 0,       -- 1: a confirmed record of the case when it was measured
  entry_key TEXT NOT NULL DEFAULT '', conditions TEXT NOT NULL DEFAULT '{}',
  UNIQUE (target, case_name, kind, name, entry_key)
) STRICT;

-- What happened, in order: the live progress and the campaign's story.
CREATE TABLE IF NOT EXISTS events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL,
  campaign TEXT NOT NULL, mission TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL, text TEXT NOT NULL
) STRICT;
