-- What an agent with count=on (or jdk) counts besides: every executed allocation, by the line of code that allocates. Only
-- files that such an agent wrote to have these tables. They belong to no version, so that programs that do not know them
-- read, write and prune the rest: names are texts here, and a run's counts go with the run.

-- A run that counts.
CREATE TABLE IF NOT EXISTS counting (
    run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    from_ms INTEGER NOT NULL,          -- when it began, since the run began
    to_ms INTEGER NOT NULL,            -- up to when all is counted, since the run began
    jdk INTEGER NOT NULL,              -- 1: in classes of the JDK's, too, where figures are lower bounds
    classes INTEGER NOT NULL,          -- class files that got counters
    missed_sites INTEGER NOT NULL,     -- for which the agent had no counter left
    missed_methods INTEGER NOT NULL,   -- that cannot be rewritten
    missed_classes INTEGER NOT NULL    -- that cannot be rewritten, or that the JVM did not take
);

-- A line of code, and what it allocates. Two sites of a line that allocate the same are one.
CREATE TABLE IF NOT EXISTS counted_site (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    class TEXT NOT NULL,               -- whose code it is, as in Java source; '(other lines)': those for which trace_max left no row
    method TEXT NOT NULL,
    line INTEGER,                      -- NULL: the class does not tell
    allocated TEXT NOT NULL,           -- as in Java source
    object_bytes INTEGER               -- of one object; NULL: an array, or not known
);
CREATE INDEX IF NOT EXISTS counted_site_key ON counted_site (run, class, method, line);

-- Periods that were counted, each from the end of the one before. Those of long ago are longer: neighbours become one.
CREATE TABLE IF NOT EXISTS counted_span (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    uptime_ms INTEGER NOT NULL,        -- its end, since the run began
    span_ms INTEGER NOT NULL,          -- its length
    sites INTEGER NOT NULL             -- so many have an amount
);
CREATE INDEX IF NOT EXISTS counted_span_key ON counted_span (run, uptime_ms);

-- What a line allocated in a period. Its bytes: array_bytes, or where that is 0 objects * object_bytes.
CREATE TABLE IF NOT EXISTS counted_amount (
    span INTEGER NOT NULL REFERENCES counted_span (id) ON DELETE CASCADE,
    site INTEGER NOT NULL,             -- of counted_site
    objects INTEGER NOT NULL,
    array_bytes INTEGER NOT NULL,      -- of objects, too, whose class's name does not tell them (lambdas); of '(other lines)': all bytes that are known
    PRIMARY KEY (span, site)
) WITHOUT ROWID;
