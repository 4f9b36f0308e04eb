//! Synthetic traces, for tests of this crate, of the command line and of the live view.
//!
//! Rows are inserted directly into the tables of `schema.sql`, without the writer's code, so that tests of readers do
//! not depend on it.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::{Database, FrameName, Names, TraceError};

/// Start of the first run, in milliseconds since 1970.
pub const STARTED_MS: i64 = 1_760_000_000_000;

/// Generates names for test data from the numbers of classes and stacks, such as `com.acme.C7` for class 7. Each stack
/// has two frames. Stacks with odd numbers are marked as incomplete.
#[derive(Clone, Copy, Debug)]
pub struct Numbered;

impl Names for Numbered {
    fn class(&self, class: u32) -> Option<Arc<str>> {
        Some(format!("com.acme.C{class}").into())
    }

    fn stack(&self, stack: u32) -> (Vec<FrameName>, bool) {
        let frame = |line| FrameName {
            class: "com.acme.Main".into(),
            method: "run".into(),
            file: None,
            line,
        };
        (vec![frame(stack.cast_signed()), frame(1)], stack % 2 == 1)
    }
}

/// A frame: class, method, file and line.
pub type SceneFrame<'a> = (&'a str, &'a str, &'a str, i64);

/// An allocation site of a synthetic trace. A trace consists of ticks (periods of time). The amounts of a site in a
/// tick depend only on the number of the tick.
#[derive(Clone, Copy)]
pub struct SceneSite<'a> {
    /// The allocated class.
    pub class: &'a str,
    /// Frames of the site's stack, innermost first.
    pub frames: &'a [SceneFrame<'a>],
    /// Bytes of an object.
    pub size: i64,
    /// Returns the number of live objects at the end of the tick with this number. Ticks are numbered from 1.
    pub live: fn(i64) -> i64,
    /// Number of additional objects that are allocated and collected within each recorded period.
    pub churn: i64,
}

/// The content of a synthetic trace.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The sites.
    pub sites: &'a [SceneSite<'a>],
    /// Number of recorded periods.
    pub ticks: i64,
    /// Length of a recorded period in milliseconds.
    pub span_ms: i64,
    /// Number of recorded periods from one young GC to the next; 0 for no young GCs.
    pub minor: i64,
    /// Number of recorded periods from one full GC to the next; 0 for no full GCs.
    pub major: i64,
    /// Names of two collectors: the collector of the young GCs, and the collector of the full GCs.
    pub collectors: [&'a str; 2],
    /// Number of objects that each sample represents.
    pub weight: i64,
    /// True if the run has not ended.
    pub running: bool,
    /// Returns a factor for the recorded period with this number. In this period, the `churn` of each site is
    /// multiplied by the factor.
    pub load: fn(i64) -> i64,
    /// Returns the allocation time (uptime) of the newest sample that was found dead in the recorded period with this
    /// number.
    pub newest: fn(i64) -> Option<i64>,
}

impl Default for Scene<'_> {
    fn default() -> Self {
        Self {
            sites: &SITES,
            ticks: 120,
            span_ms: 1000,
            minor: 2,
            major: 10,
            collectors: ["G1 Young Generation", "G1 Old Generation"],
            weight: 16,
            running: false,
            load: |_| 1,
            newest: |_| None,
        }
    }
}

const MAIN: SceneFrame<'static> = ("com.acme.Main", "main", "Main.java", 12);

/// A service with five sites. One site is a leak that keeps one buffer per request after the 20th tick. The other sites
/// are a cache that fills and stays full, tables that are loaded at the start, sessions that come and go, and
/// short-lived strings.
pub const SITES: [SceneSite<'static>; 5] = [
    SceneSite {
        class: "byte[]",
        frames: &[
            ("com.acme.Interceptor", "record", "Interceptor.java", 31),
            ("com.acme.Handler", "handle", "Handler.java", 40),
            MAIN,
        ],
        size: 2064,
        live: |t| (t - 20).max(0) * 160 + pseudo_random(t, 2) * 16,
        churn: 32,
    },
    SceneSite {
        class: "com.acme.Page",
        frames: &[
            ("com.acme.Cache", "load", "Cache.java", 22),
            ("com.acme.Handler", "handle", "Handler.java", 42),
            MAIN,
        ],
        size: 4096,
        live: |t| (t * 32).min(1600) + pseudo_random(t, 3) * 16,
        churn: 0,
    },
    SceneSite {
        class: "com.acme.Tax",
        frames: &[("com.acme.Tables", "<clinit>", "Tables.java", 9), MAIN],
        size: 256,
        live: |_| 4800,
        churn: 0,
    },
    SceneSite {
        class: "com.acme.Session",
        frames: &[
            ("com.acme.Sessions", "open", "Sessions.java", 17),
            ("com.acme.Handler", "handle", "Handler.java", 38),
            MAIN,
        ],
        size: 512,
        // These objects are in the old generation, so only a full GC frees them.
        live: |t| 320 + t % 10 * 160,
        churn: 0,
    },
    SceneSite {
        class: "java.lang.String",
        frames: &[
            (
                "java.lang.StringBuilder",
                "toString",
                "StringBuilder.java",
                453,
            ),
            ("com.acme.Log", "line", "Log.java", 55),
            ("com.acme.Handler", "handle", "Handler.java", 44),
            MAIN,
        ],
        size: 48,
        live: |t| 160 * pseudo_random(t, 5),
        churn: 16_000,
    },
];

/// Counted lines of code of the service in [`SITES`]. The samples of `byte[]` and `Page` agree with the counts. `Point`
/// has counts but no samples, because the JIT compiler removes its allocations. Objects of `Plugin` have two different
/// sizes, so the size of one object is unknown.
pub const LINES: [SceneLine<'static>; 4] = [
    SceneLine {
        place: ("com.acme.Interceptor", "record", 31),
        allocated: "byte[]",
        size: Some(2064),
        objects: 165,
    },
    SceneLine {
        place: ("com.acme.Handler", "handle", 41),
        allocated: "com.acme.Point",
        size: Some(24),
        objects: 1_000_000,
    },
    SceneLine {
        place: ("com.acme.Cache", "load", 22),
        allocated: "com.acme.Page",
        size: Some(4096),
        objects: 14,
    },
    SceneLine {
        place: ("com.acme.Plugins", "load", 5),
        allocated: "com.acme.Plugin",
        size: None,
        objects: 1,
    },
];

/// Returns a number from 0 to 4 that looks random but is deterministic.
const fn pseudo_random(tick: i64, seed: i64) -> i64 {
    (tick * 7919 + seed * 104_729) % 31 % 5
}

/// Writes a run to a trace, and creates the trace if the file does not exist. Returns the run's id.
///
/// # Errors
/// Returns an error if the file cannot be written, or is not a trace.
pub fn write(path: &Path, scene: &Scene<'_>) -> Result<i64, TraceError> {
    let database = Database::create(path)?;
    rows(database.connection(), scene).map_err(|source| TraceError::Sqlite {
        path: path.to_owned(),
        source,
    })
}

/// A line of code that is counted.
#[derive(Clone, Copy, Debug)]
pub struct SceneLine<'a> {
    /// Class, method and line.
    pub place: (&'a str, &'a str, i64),
    /// The allocated class.
    pub allocated: &'a str,
    /// Bytes of an object; `None` if unknown.
    pub size: Option<i64>,
    /// Number of objects allocated in each recorded period.
    pub objects: i64,
}

/// Adds counts by line of code to the last run of a trace: for each line, one count for each recorded period of the
/// run.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn count(path: &Path, lines: &[SceneLine<'_>]) -> Result<(), TraceError> {
    let database = Database::create(path)?;
    counts(database.connection(), lines).map_err(|source| TraceError::Sqlite {
        path: path.to_owned(),
        source,
    })
}

fn counts(connection: &Connection, lines: &[SceneLine<'_>]) -> rusqlite::Result<()> {
    let t = connection.unchecked_transaction()?;
    t.execute_batch(include_str!("counted.sql"))?;
    let run: i64 = t.query_row("SELECT max(id) FROM run", [], |row| row.get(0))?;
    t.execute(
        "INSERT INTO counting SELECT run, 0, max(uptime_ms), 0, 12, 0, 0, 0 FROM tick WHERE run = ?1",
        [run],
    )?;
    t.execute(
        "INSERT INTO counted_span (run, uptime_ms, span_ms, sites) SELECT run, uptime_ms, span_ms, ?2 FROM tick
         WHERE run = ?1 ORDER BY id",
        params![run, i64::try_from(lines.len()).unwrap_or(i64::MAX)],
    )?;
    for line in lines {
        let (class, method, at) = line.place;
        let is_array = line.allocated.ends_with("[]");
        let size = line.size.filter(|_| !is_array);
        t.execute(
            "INSERT INTO counted_site (run, class, method, line, allocated, object_bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![run, class, method, at, line.allocated, size],
        )?;
        let site = t.last_insert_rowid();
        let bytes = line.size.filter(|_| is_array).unwrap_or(0) * line.objects;
        t.execute(
            "INSERT INTO counted_amount SELECT id, ?2, ?3, ?4 FROM counted_span WHERE run = ?1",
            params![run, site, line.objects, bytes],
        )?;
    }
    t.commit()
}

fn rows(connection: &Connection, scene: &Scene<'_>) -> rusqlite::Result<i64> {
    let t = connection.unchecked_transaction()?;
    let number: i64 = t.query_row("SELECT count(*) + 1 FROM run", [], |r| r.get(0))?;
    // Each run of a trace starts a day after the previous run.
    let start = STARTED_MS + (number - 1) * 86_400_000;
    let end = (!scene.running).then_some(start + scene.ticks * scene.span_ms);
    t.execute(
        "INSERT INTO run (uid, pid, host, service, started_ms, ended_ms, jvm, command, flags, options,
            interval_bytes, strategy)
         VALUES (?1, ?2, 'shop-1', 'shop', ?3, ?4, 'OpenJDK 64-Bit Server VM 25.0.3+9', 'com.acme.Main serve',
            '-Xmx256m', 'trace=shop.db', 32768, 'bytes')",
        params![format!("synthetic-{number}"), 4710 + number, start, end],
    )?;
    let run = t.last_insert_rowid();
    let sites: Vec<i64> = scene
        .sites
        .iter()
        .map(|site| self::site(&t, site))
        .collect::<rusqlite::Result<_>>()?;
    let mut lives = vec![0; sites.len()];
    for tick in 1..=scene.ticks {
        let uptime = tick * scene.span_ms;
        let time = start + uptime;
        let used: i64 = scene.sites.iter().map(|s| (s.live)(tick) * s.size).sum();
        t.execute(
            "INSERT INTO tick (run, time_ms, uptime_ms, span_ms, heap_used, heap_committed, metaspace_used,
                metaspace_committed, loaded_classes, samples, lost_samples, lost_bytes, newest_collected_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, 268435456, ?6, 16777216, ?7, ?8, 0, 0, ?9)",
            params![
                run,
                time,
                uptime,
                scene.span_ms,
                8_388_608 + used,
                8_388_608 + tick * 64,
                1000 + tick,
                64,
                (scene.newest)(tick),
            ],
        )?;
        let row = t.last_insert_rowid();
        for ((site, &id), before) in scene.sites.iter().zip(&sites).zip(&mut lives) {
            let live = (site.live)(tick);
            let came = (live - *before).max(0) + site.churn * (scene.load)(tick);
            let went = came + *before - live;
            if came == 0 && went == 0 {
                continue;
            }
            *before = live;
            let each = |n: i64| [(n + scene.weight - 1) / scene.weight, n, n * site.size];
            let [came, went, live] = [came, went, live].map(each);
            let one = (scene.weight * site.size) as f64;
            t.execute(
                "INSERT INTO site_tick VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    id,
                    row,
                    came[0],
                    came[1],
                    came[2],
                    went[0],
                    went[1],
                    went[2],
                    live[0],
                    live[1],
                    live[2],
                    live[0] as f64 * one * one
                ],
            )?;
        }
        let due = |every: i64| every > 0 && tick % every == 0;
        if due(scene.major) || due(scene.minor) {
            let major = due(scene.major);
            let [young, whole] = scene.collectors;
            let (collector, cause) = if major {
                (whole, "System.gc()")
            } else {
                (young, "G1 Evacuation Pause")
            };
            t.execute(
                "INSERT INTO collection (run, time_ms, uptime_ms, collector, major, cause, pause_us, before_bytes,
                    after_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    run,
                    time - 1,
                    uptime - 1,
                    collector,
                    major,
                    cause,
                    if major { 41_000 } else { 2_500 },
                    12_582_912 + used,
                    8_388_608 + used
                ],
            )?;
        }
    }
    samples(&t, run, scene, &sites)?;
    t.execute(
        "INSERT INTO dump (run, time_ms, uptime_ms, path) VALUES (?1, ?2, ?3, 'before.hprof')",
        params![run, start + 5 * scene.span_ms, 5 * scene.span_ms],
    )?;
    t.execute(
        "INSERT INTO note (run, time_ms, text) VALUES (?1, ?2, 'sampling every 32 KiB')",
        params![run, start],
    )?;
    t.commit()?;
    Ok(run)
}

/// Writes the samples that are alive at the end of the last recorded period. For each site with many short-lived
/// objects, also writes 24 collected samples. Samples 0 to 15 belong to the random selection from all collected
/// samples, and samples 8 to 23 are among the most recent.
fn samples(
    connection: &Connection,
    run: i64,
    scene: &Scene<'_>,
    sites: &[i64],
) -> rusqlite::Result<()> {
    let mut samples = Vec::new();
    for (site, &id) in scene.sites.iter().zip(sites) {
        let live = ((site.live)(scene.ticks) + scene.weight - 1) / scene.weight;
        for n in 0..live {
            // Allocation times are spread evenly over the run.
            let allocated = (n * scene.ticks / live.max(1)) * scene.span_ms + 10 + n % 7;
            samples.push((allocated, id, site.size, None));
        }
        for n in (0..24).filter(|_| site.churn > 1000) {
            let allocated = (n * scene.ticks / 24) * scene.span_ms + 500 + n;
            samples.push((allocated, id, site.size, Some((n, allocated + 3 + n * 7))));
        }
    }
    samples.sort_unstable();
    let mut threads = Vec::new();
    for name in ["main", "http-1", "http-2"] {
        let find = "SELECT id FROM thread WHERE name = ?1";
        let add = "INSERT INTO thread (name) VALUES (?1)";
        threads.push(find_or_insert(connection, find, add, [name])?);
    }
    for (uid, (allocated, site, bytes, collected)) in (1_i64..).zip(samples) {
        // Some samples have no known thread.
        let thread = usize::try_from(uid % 3).ok().and_then(|n| threads.get(n));
        let thread = thread.filter(|_| uid % 50 != 0);
        let number = collected.map(|(n, _)| n);
        connection.execute(
            "INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                run,
                uid,
                site,
                thread,
                bytes,
                allocated,
                collected.map(|(_, at)| at),
                number.is_some_and(|n| n >= 8),
                number.is_some_and(|n| n < 16),
            ],
        )?;
    }
    Ok(())
}

fn site(connection: &Connection, site: &SceneSite<'_>) -> rusqlite::Result<i64> {
    let mut parent: Option<i64> = None;
    for &(class, method, file, line) in site.frames.iter().rev() {
        let class = self::class(connection, class)?;
        let found =
            "SELECT id FROM frame WHERE class = ?1 AND method = ?2 AND file = ?3 AND line = ?4";
        let add = "INSERT INTO frame (class, method, file, line) VALUES (?1, ?2, ?3, ?4)";
        let frame = find_or_insert(connection, found, add, params![class, method, file, line])?;
        let found = "SELECT id FROM stack WHERE parent IS ?1 AND frame = ?2";
        let add = "INSERT INTO stack (parent, frame) VALUES (?1, ?2)";
        parent = Some(find_or_insert(
            connection,
            found,
            add,
            params![parent, frame],
        )?);
    }
    let class = self::class(connection, site.class)?;
    let found = "SELECT id FROM site WHERE class = ?1 AND stack IS ?2";
    let add = "INSERT INTO site (class, stack) VALUES (?1, ?2)";
    find_or_insert(connection, found, add, params![class, parent])
}

fn class(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    let found = "SELECT id FROM class WHERE name = ?1";
    find_or_insert(
        connection,
        found,
        "INSERT INTO class (name) VALUES (?1)",
        [name],
    )
}

/// Returns the id of an existing row, or inserts a new one.
fn find_or_insert(
    connection: &Connection,
    find: &str,
    add: &str,
    values: impl rusqlite::Params + Clone,
) -> rusqlite::Result<i64> {
    let found = connection.query_row(find, values.clone(), |r| r.get(0));
    match found {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            connection.execute(add, values)?;
            Ok(connection.last_insert_rowid())
        }
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::{SITES, Scene, write};
    use crate::Database;

    #[test]
    fn runs_share_their_sites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        assert_eq!(write(&path, &Scene::default()).unwrap(), 1);
        assert_eq!(write(&path, &Scene::default()).unwrap(), 2);
        let database = Database::open(&path).unwrap();
        let count = |sql| {
            let count = database
                .connection()
                .query_row(sql, [], |r| r.get::<_, i64>(0));
            count.unwrap()
        };
        assert_eq!(count("SELECT count(*) FROM site"), SITES.len() as i64);
        assert_eq!(count("SELECT count(*) FROM tick"), 240);
        // Live objects must equal allocated minus collected ones.
        let odd = "SELECT count(*) FROM (SELECT site, sum(allocated_objects - collected_objects) AS net,
                max(tick) AS last FROM site_tick WHERE tick <= 120 GROUP BY site) AS s
            JOIN site_tick AS l ON l.site = s.site AND l.tick = s.last WHERE l.live_objects <> s.net";
        assert_eq!(count(odd), 0);
    }
}
