-- Version 2 of the trace database adds single samples. When a newer agent writes to a trace of version 1, it adds these
-- tables.

-- Names of threads that allocated. All virtual threads without a name share the row '(virtual thread)'.
CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- Single samples: all that were live at the last tick of the run (collected_ms is NULL), and two selections of collected
-- samples: the most recently collected ones, and a uniform random selection. The option garbage sets the size of each
-- selection; this table has at most 16,384 samples of each. About 10,000 samples are added per tick at most. The table has
-- at most trace_max / 256 rows. The figures in site_tick count all samples. A heap dump of the same JVM contains the same
-- uid, bytes and times.
CREATE TABLE sample (
    run INTEGER NOT NULL REFERENCES run (id),
    uid INTEGER NOT NULL,              -- unique in a run, ascending in the order of allocation
    site INTEGER NOT NULL REFERENCES site (id),
    thread INTEGER REFERENCES thread (id),  -- thread that allocated the object; NULL: unknown
    bytes INTEGER NOT NULL,            -- size of the object; the estimate of all bytes that it represents is in site_tick
    allocated_ms INTEGER NOT NULL,     -- time of the allocation, since the run began
    collected_ms INTEGER,              -- time when the agent found the object collected, since the run began; NULL: live
    recent INTEGER NOT NULL,           -- 1: one of the most recently collected samples
    chosen INTEGER NOT NULL,           -- 1: part of the random selection of collected samples
    PRIMARY KEY (run, uid)
) WITHOUT ROWID;
