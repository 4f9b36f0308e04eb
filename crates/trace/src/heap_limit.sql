-- The limits of a JVM's heap, as the agent read them when the run began. The table belongs to no version, so programs that do
-- not know it can read, write and prune the rest. The limits of a run are deleted with the run.
CREATE TABLE IF NOT EXISTS heap_limit (
    run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    heap_bytes INTEGER,                -- Runtime.maxMemory(); NULL: unknown
    container_bytes INTEGER            -- the smallest limit of the process's control groups; NULL: no limit
);
