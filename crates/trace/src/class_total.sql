-- Allocations by class, which an agent with strategy=class counts: all allocations that pass the agent's filters, from
-- the start of the run to its last tick. Only traces of such agents have this table.
-- The table belongs to no schema version, so older programs can read, write and prune the other tables. Therefore the
-- table contains names of classes instead of references to the table class, from which an older program may delete rows.
-- The counts of a run are deleted with the run.
CREATE TABLE IF NOT EXISTS class_total (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    class TEXT NOT NULL,               -- as in Java source; '(other classes)': all classes without a row, because trace_max was reached
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (run, class)
) WITHOUT ROWID;
