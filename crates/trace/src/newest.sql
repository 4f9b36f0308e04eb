-- Version 3 of the trace database adds this column. When a newer agent writes to a trace of an older version, it adds the
-- column. Rows of older agents contain NULL.

-- Allocation time of the newest sample that the agent found collected in this tick, since the run began. NULL: no sample
-- was found collected, or the time is unknown.
-- With generational ZGC, this time is the limit of the last major GC. Live objects that were allocated earlier survived
-- this GC. Objects that were allocated later cannot be found collected yet.
ALTER TABLE tick ADD COLUMN newest_collected_ms INTEGER;
