-- The history of jobs. In the same file as the results log, or alone where there is no repository.
-- A row is written when a call has to wait or its job starts, and completed when it ends; a row whose
-- runner died is completed as 'lost' by the next runner.
CREATE TABLE IF NOT EXISTS jobs (
  id         TEXT PRIMARY KEY,
  device     TEXT NOT NULL,            -- 'cpu' or the GPU's UUID
  argv       TEXT NOT NULL,            -- JSON array
  directory  TEXT NOT NULL,
  mission    TEXT NOT NULL DEFAULT '',
  priority   TEXT NOT NULL,            -- high | normal | low
  queued_ms  INTEGER NOT NULL,         -- milliseconds since 1970 (UTC), as all of these
  started_ms INTEGER,
  ended_ms   INTEGER,                  -- of a lost job: when it was noticed; its end nobody saw
  exit_code  INTEGER,                  -- what gpu_run ended with
  signal     INTEGER,                  -- the signal that ended the job, or NULL
  outcome    TEXT,                     -- ok|failed|run_limit|queue_limit|killed|cancelled|lost
  nonce      TEXT NOT NULL,            -- CRUCIBLE_JOB_NONCE of its processes
  runner     TEXT NOT NULL,            -- PID:START_TICKS:BOOT_ID of the gpu_run in charge
  log_path   TEXT NOT NULL DEFAULT '',
  toolchain  TEXT NOT NULL DEFAULT '{}',
  clocks     TEXT NOT NULL DEFAULT '{}',  -- before, during, after
  drift      TEXT NOT NULL DEFAULT ''     -- steady|drifted|throttled|power_capped|unlocked|gone|unknown|off
);
CREATE INDEX IF NOT EXISTS jobs_open ON jobs(id) WHERE outcome IS NULL;
CREATE INDEX IF NOT EXISTS jobs_by_time ON jobs(queued_ms);
