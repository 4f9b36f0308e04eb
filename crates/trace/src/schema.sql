-- The trace database. Times of day are milliseconds since 1970 (UTC), so that traces of several
-- machines can be laid beside each other; spans and uptimes come from the monotonic clock, which a
-- change of the machine's time does not move. Objects and bytes are estimates made of samples
-- unless run.interval_bytes is 0: then they are counts, until a note says that max_samples was reached.

-- One row for each JVM that wrote to this file.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,          -- 'pid-started', as the heap's agent objects have them
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    service TEXT,                      -- what the user calls it (option service=)
    started_ms INTEGER NOT NULL,       -- when the agent began to sample
    ended_ms INTEGER,                  -- NULL: still running, or killed
    jvm TEXT NOT NULL,                 -- name and version
    command TEXT NOT NULL,             -- main class or jar, with arguments
    flags TEXT NOT NULL,               -- arguments of the JVM
    options TEXT NOT NULL,             -- of the agent, as given
    interval_bytes INTEGER NOT NULL,
    strategy TEXT NOT NULL             -- 'recording': imported from JFR; live figures are of what was found alive at last
);

CREATE TABLE class (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE          -- as in Java source
);

CREATE TABLE frame (
    id INTEGER PRIMARY KEY,
    class INTEGER NOT NULL REFERENCES class (id),
    method TEXT NOT NULL,
    file TEXT,
    line INTEGER                       -- NULL: unknown, or a native method
);
CREATE INDEX frame_key ON frame (class, method, line);

-- A stack is its innermost frame and the stack that called it. Where the agent has cut a stack off at its
-- outer end, the outermost frame is of the class '...', with an empty method.
CREATE TABLE stack (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES stack (id),   -- NULL: the outermost frame
    frame INTEGER NOT NULL REFERENCES frame (id)
);
CREATE INDEX stack_key ON stack (frame, parent);

-- An allocation site: what is allocated, and where.
CREATE TABLE site (
    id INTEGER PRIMARY KEY,
    class INTEGER NOT NULL REFERENCES class (id),
    stack INTEGER REFERENCES stack (id)     -- NULL: no Java frame
);
CREATE INDEX site_key ON site (class, stack);

-- One row for each period that was looked at.
CREATE TABLE tick (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,          -- its end
    uptime_ms INTEGER NOT NULL,        -- its end, since the run began
    span_ms INTEGER NOT NULL,          -- its length; more once old ticks are rolled up
    heap_used INTEGER NOT NULL,
    heap_committed INTEGER NOT NULL,
    metaspace_used INTEGER NOT NULL,
    metaspace_committed INTEGER NOT NULL,
    loaded_classes INTEGER NOT NULL,   -- so many at its end
    samples INTEGER NOT NULL,          -- taken in it
    lost_samples INTEGER NOT NULL,     -- taken, but not kept: live figures are too low by them
    lost_bytes INTEGER NOT NULL        -- their estimate
);
CREATE INDEX tick_time ON tick (run, uptime_ms);

-- What happened at a site in a tick. A site where nothing happened has no row; live_* are the
-- state at the tick's end, so the last row at or before a moment says what was live then.
CREATE TABLE site_tick (
    site INTEGER NOT NULL REFERENCES site (id),
    tick INTEGER NOT NULL REFERENCES tick (id),
    allocated_samples INTEGER NOT NULL,
    allocated_objects INTEGER NOT NULL,
    allocated_bytes INTEGER NOT NULL,
    collected_samples INTEGER NOT NULL,
    collected_objects INTEGER NOT NULL,
    collected_bytes INTEGER NOT NULL,
    live_samples INTEGER NOT NULL,
    live_objects INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    live_bytes_variance REAL NOT NULL, -- of the estimate, from the samples' weights
    PRIMARY KEY (site, tick)
) WITHOUT ROWID;
CREATE INDEX site_tick_tick ON site_tick (tick);

CREATE TABLE collection (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,
    uptime_ms INTEGER NOT NULL,
    collector TEXT NOT NULL,           -- as the JVM's beans call it
    major INTEGER NOT NULL,            -- 1: the whole heap
    cause TEXT NOT NULL,               -- '' where the JVM does not say
    pause_us INTEGER NOT NULL,
    before_bytes INTEGER NOT NULL,
    after_bytes INTEGER NOT NULL
);
CREATE INDEX collection_time ON collection (run, uptime_ms);

-- Classes loaded and unloaded in a tick, by name.
CREATE TABLE class_tick (
    tick INTEGER NOT NULL REFERENCES tick (id),
    class INTEGER NOT NULL REFERENCES class (id),
    loaded INTEGER NOT NULL,
    unloaded INTEGER NOT NULL,
    PRIMARY KEY (tick, class)
) WITHOUT ROWID;

CREATE TABLE dump (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,
    uptime_ms INTEGER NOT NULL,
    path TEXT                          -- NULL: not known; who took the dump may say it
);

-- What the reader of a trace should know: a warning, an interval that was widened.
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,
    text TEXT NOT NULL
);
