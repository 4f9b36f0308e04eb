-- What an agent with strategy=class counts besides: every allocation of each class since the run began, past the agent's
-- filters, up to the run's last tick. Only files that such an agent wrote to have this table. It belongs to no version, so
-- that programs that do not know it read, write and prune the rest: a class is its name here, and no row of class that
-- another may drop, and a run's counts go with the run.
CREATE TABLE IF NOT EXISTS class_total (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    class TEXT NOT NULL,               -- as in Java source; '(other classes)': those for which trace_max left no row
    objects INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (run, class)
) WITHOUT ROWID;
