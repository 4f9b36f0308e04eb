-- What version 2 of the trace database has besides: single samples. A trace of version 1 gets these tables
-- when an agent of this version writes to it.

-- Threads that allocated, by name. Virtual threads without one are all '(virtual thread)'.
CREATE TABLE thread (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- Samples, each by itself: those that were live at the run's last tick (collected_ms is NULL), and of those
-- that were collected the last ones and a uniform choice of all (option garbage says how many of each; here 16,384 at
-- most). New ones come some 10,000 a tick at most, and there are no more rows than a 256th of trace_max's bytes; the
-- figures in site_tick count all samples. uid, bytes and times are those that a heap dump of the same JVM has.
CREATE TABLE sample (
    run INTEGER NOT NULL REFERENCES run (id),
    uid INTEGER NOT NULL,              -- unique in a run, ascending in the order of allocation
    site INTEGER NOT NULL REFERENCES site (id),
    thread INTEGER REFERENCES thread (id),  -- that allocated it; NULL: not known
    bytes INTEGER NOT NULL,            -- of the object itself; what it stands for is in site_tick
    allocated_ms INTEGER NOT NULL,     -- uptime
    collected_ms INTEGER,              -- uptime when the agent found it collected; NULL: live
    recent INTEGER NOT NULL,           -- 1: of those that were collected last
    chosen INTEGER NOT NULL,           -- 1: of the uniform choice of all that were collected
    PRIMARY KEY (run, uid)
) WITHOUT ROWID;
