-- What version 3 of the trace database has besides. A trace of an older version gets it when an agent of this version
-- writes to it; what older agents write has NULL here.

-- When the newest of the samples was allocated that were found to be collected in a tick, as an uptime; NULL: none was,
-- or not known. Under generational ZGC that is how far the last major collection has looked: what was allocated before
-- and is live has outlived it, of what came later nothing can be found to be dead.
ALTER TABLE tick ADD COLUMN newest_collected_ms INTEGER;
