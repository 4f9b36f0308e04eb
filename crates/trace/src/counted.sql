-- Executed allocations by line of code, which an agent with count=on or count=jdk counts. Only traces of such agents have
-- these tables. They belong to no schema version, so older programs can read, write and prune the other tables. Therefore
-- the tables contain names instead of references. The counts of a run are deleted with the run.

-- A run in which the agent counts.
CREATE TABLE IF NOT EXISTS counting (
    run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    from_ms INTEGER NOT NULL,          -- time when the count began, since the run began
    to_ms INTEGER NOT NULL,            -- end of the last counted period, since the run began
    jdk INTEGER NOT NULL,              -- 1: also in JDK classes, whose counts are lower bounds
    classes INTEGER NOT NULL,          -- number of classes with counters
    missed_sites INTEGER NOT NULL,     -- number of allocations in code that got no counter, because none was left
    missed_methods INTEGER NOT NULL,   -- number of methods that cannot be rewritten
    missed_classes INTEGER NOT NULL    -- number of classes that cannot be rewritten, or that the JVM rejected
);

-- A line of code and a class that it allocates. Several allocations of the same class in one line share a row.
CREATE TABLE IF NOT EXISTS counted_site (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    class TEXT NOT NULL,               -- class of the code, as in Java source; '(other lines)': all lines without a row, because trace_max was reached
    method TEXT NOT NULL,
    line INTEGER,                      -- NULL: the class file has no line numbers
    allocated TEXT NOT NULL,           -- the allocated class, as in Java source
    object_bytes INTEGER               -- size of one object; NULL: an array, or unknown
);
CREATE INDEX IF NOT EXISTS counted_site_key ON counted_site (run, class, method, line);

-- Counted periods. Each begins at the end of the previous one. Neighbouring old periods are merged.
CREATE TABLE IF NOT EXISTS counted_span (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    uptime_ms INTEGER NOT NULL,        -- end of the period, since the run began
    span_ms INTEGER NOT NULL,          -- length of the period
    sites INTEGER NOT NULL             -- number of sites with an amount in this period
);
CREATE INDEX IF NOT EXISTS counted_span_key ON counted_span (run, uptime_ms);

-- What a line allocated in a period. The number of bytes is array_bytes if it is not 0, or else objects * object_bytes.
CREATE TABLE IF NOT EXISTS counted_amount (
    span INTEGER NOT NULL REFERENCES counted_span (id) ON DELETE CASCADE,
    site INTEGER NOT NULL,             -- id in counted_site
    objects INTEGER NOT NULL,
    array_bytes INTEGER NOT NULL,      -- bytes of arrays, and of objects whose class name does not determine the size (lambdas); for '(other lines)': all known bytes
    PRIMARY KEY (span, site)
) WITHOUT ROWID;
