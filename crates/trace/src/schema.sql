-- The trace database. Times of day (time_ms) are milliseconds since 1970 (UTC), so traces of several machines can be
-- compared. Spans and uptimes come from the monotonic clock, which does not change when the machine's time is set.
-- Numbers of objects and bytes are estimates from samples. If run.interval_bytes is 0, they are exact counts, until a
-- note reports that max_samples was reached.

-- One row for each JVM that wrote to this file.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,          -- 'pid-started', as in the objects of the agent in heap dumps
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    service TEXT,                      -- name that the user chose (option service=)
    started_ms INTEGER NOT NULL,       -- when the agent began to sample
    ended_ms INTEGER,                  -- NULL: still running, or killed
    jvm TEXT NOT NULL,                 -- name and version
    command TEXT NOT NULL,             -- main class or jar, with arguments
    flags TEXT NOT NULL,               -- arguments of the JVM
    options TEXT NOT NULL,             -- options of the agent, as the user gave them
    interval_bytes INTEGER NOT NULL,
    strategy TEXT NOT NULL             -- sampling strategy; 'recording': imported from JFR, with live figures only of the objects that were live at its end
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

-- A stack: its innermost frame, and the stack of the caller. If the agent cut off the outer frames, the outermost frame
-- has the class '...' and an empty method.
CREATE TABLE stack (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES stack (id),   -- NULL: the outermost frame
    frame INTEGER NOT NULL REFERENCES frame (id)
);
CREATE INDEX stack_key ON stack (frame, parent);

-- An allocation site: the allocated class and the allocating stack.
CREATE TABLE site (
    id INTEGER PRIMARY KEY,
    class INTEGER NOT NULL REFERENCES class (id),
    stack INTEGER REFERENCES stack (id)     -- NULL: no Java frame
);
CREATE INDEX site_key ON site (class, stack);

-- One row for each tick: a period at whose end the agent wrote its figures.
CREATE TABLE tick (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,          -- end of the tick
    uptime_ms INTEGER NOT NULL,        -- end of the tick, since the run began
    span_ms INTEGER NOT NULL,          -- length of the tick; old ticks are merged into longer ones
    heap_used INTEGER NOT NULL,
    heap_committed INTEGER NOT NULL,
    metaspace_used INTEGER NOT NULL,
    metaspace_committed INTEGER NOT NULL,
    loaded_classes INTEGER NOT NULL,   -- number of loaded classes at the end of the tick
    samples INTEGER NOT NULL,          -- number of samples recorded in the tick, without the lost ones
    lost_samples INTEGER NOT NULL,     -- number of samples that were dropped; live figures are too low by them
    lost_bytes INTEGER NOT NULL        -- estimated bytes that the lost samples represent
);
CREATE INDEX tick_time ON tick (run, uptime_ms);

-- Allocations and collected objects of a site in a tick. A site has no row for a tick in which nothing changed. The
-- columns live_* are the state at the end of the tick. So the last row at or before a moment has the live objects
-- of this moment.
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
    live_bytes_variance REAL NOT NULL, -- variance of live_bytes, from the weights of the samples
    PRIMARY KEY (site, tick)
) WITHOUT ROWID;
CREATE INDEX site_tick_tick ON site_tick (tick);

CREATE TABLE collection (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,
    uptime_ms INTEGER NOT NULL,
    collector TEXT NOT NULL,           -- name of the JVM's bean (GarbageCollectorMXBean)
    major INTEGER NOT NULL,            -- 1: a GC of the whole heap
    cause TEXT NOT NULL,               -- '' if the JVM does not report the cause
    pause_us INTEGER NOT NULL,
    before_bytes INTEGER NOT NULL,
    after_bytes INTEGER NOT NULL
);
CREATE INDEX collection_time ON collection (run, uptime_ms);

-- Number of classes with this name that were loaded and unloaded in a tick.
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
    path TEXT                          -- NULL: unknown; the tool that took the dump may add the path
);

-- Messages for readers of the trace, such as a warning or an increased sampling interval.
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id),
    time_ms INTEGER NOT NULL,
    text TEXT NOT NULL
);
