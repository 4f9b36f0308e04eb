//! Writes each name to a trace once. A class, frame, stack or site gets its id when it first occurs in the data to be
//! written.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use rustc_hash::FxHashMap;

/// Maximum number of cached stack ids. If there are more, the cache is cleared.
const MOST_STEPS: usize = 1 << 16;
/// Class name of the frame that replaces the frames that were cut off from a stack.
const CUT: &str = "...";

/// A JVM is considered ended if it has written nothing for the length of its last recorded period plus this many
/// milliseconds.
pub(crate) const SILENT: i64 = 10 * 60_000;
/// Selects runs other than `?2` whose JVM may still be writing. These runs have no recorded end. They began at `?1` or
/// later, or their next write is due at `?1` or later.
pub(crate) const ALIVE: &str =
    "SELECT id FROM run WHERE id <> ?2 AND ended_ms IS NULL AND (started_ms >= ?1
    OR EXISTS (SELECT 1 FROM tick WHERE run = run.id AND time_ms + span_ms >= ?1))";

/// The names of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameName {
    /// Name of the class that declares the method, in the form `com.acme.Foo$Bar`.
    pub class: Arc<str>,
    /// The method; empty if only classes are recorded.
    pub method: Arc<str>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line; below 1 if unknown.
    pub line: i32,
}

/// A source of the names of classes and stacks. [`crate::Activity`] contains only their numbers.
pub trait Names {
    /// Returns the name of a class, in the form `com.acme.Foo$Bar` or `byte[]`.
    fn class(&self, class: u32) -> Option<Arc<str>>;
    /// Returns the frames of a stack, innermost first, and true if outer frames were cut off.
    fn stack(&self, stack: u32) -> (Vec<FrameName>, bool);
}

/// A source without names.
impl Names for () {
    fn class(&self, _: u32) -> Option<Arc<str>> {
        None
    }

    fn stack(&self, _: u32) -> (Vec<FrameName>, bool) {
        (Vec::new(), false)
    }
}

/// A cache of row ids by the caller's numbers for classes, stacks and other names. The meaning of a number never
/// changes. The cache is cleared when names may have been deleted from the database.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    classes: FxHashMap<u32, i64>,
    stacks: FxHashMap<u32, Option<i64>>,
    sites: FxHashMap<(u32, u32), i64>,
    steps: FxHashMap<(Option<i64>, i64), i64>,
    threads: FxHashMap<u32, i64>,
}

impl Ids {
    /// Returns the id of a site, or `None` if it has no id and there is no room for more names.
    pub(crate) fn site(
        &mut self,
        connection: &Connection,
        names: &impl Names,
        (class, stack): (u32, u32),
        full: bool,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(&id) = self.sites.get(&(class, stack)) {
            return Ok(Some(id));
        }
        if full {
            return Ok(None);
        }
        let Some(class_id) = self.class(connection, names, class, full)? else {
            return Ok(None);
        };
        let stack_id = match self.stacks.get(&stack) {
            Some(&id) => id,
            None => {
                let id = self.stack(connection, names, stack)?;
                self.stacks.insert(stack, id);
                id
            }
        };
        let find = "SELECT id FROM site WHERE class = ?1 AND stack IS ?2";
        let found = connection
            .prepare_cached(find)?
            .query_row(params![class_id, stack_id], |row| row.get(0))
            .optional()?;
        let id = match found {
            Some(id) => id,
            None => {
                connection
                    .prepare_cached("INSERT INTO site (class, stack) VALUES (?1, ?2)")?
                    .execute(params![class_id, stack_id])?;
                connection.last_insert_rowid()
            }
        };
        self.sites.insert((class, stack), id);
        Ok(Some(id))
    }

    /// Returns the id of a class, or `None` if it has no id and there is no room for more names.
    pub(crate) fn class(
        &mut self,
        connection: &Connection,
        names: &impl Names,
        class: u32,
        full: bool,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(&id) = self.classes.get(&class) {
            return Ok(Some(id));
        }
        if full {
            return Ok(None);
        }
        let name = names.class(class);
        let id = class_named(connection, name.as_deref().unwrap_or("(unknown)"))?;
        self.classes.insert(class, id);
        Ok(Some(id))
    }

    /// Returns the id of a thread's name, or `None` if the name is unknown.
    pub(crate) fn thread(
        &mut self,
        connection: &Connection,
        thread: u32,
        name: impl FnOnce(u32) -> Option<Arc<str>>,
    ) -> rusqlite::Result<Option<i64>> {
        if let Some(&id) = self.threads.get(&thread) {
            return Ok(Some(id));
        }
        let Some(name) = (thread != 0).then(|| name(thread)).flatten() else {
            return Ok(None);
        };
        let id = find_or_insert_name(connection, "thread", &name)?;
        self.threads.insert(thread, id);
        Ok(Some(id))
    }

    fn stack(
        &mut self,
        connection: &Connection,
        names: &impl Names,
        stack: u32,
    ) -> rusqlite::Result<Option<i64>> {
        let (frames, cut) = names.stack(stack);
        let mut parent = None;
        if cut {
            let class = class_named(connection, CUT)?;
            let frame = frame(connection, class, "", None, None)?;
            parent = Some(self.step(connection, None, frame)?);
        }
        for name in frames.iter().rev() {
            let class = class_named(connection, &name.class)?;
            let line = (name.line > 0).then_some(name.line);
            let frame = frame(connection, class, &name.method, name.file.as_deref(), line)?;
            parent = Some(self.step(connection, parent, frame)?);
        }
        Ok(parent)
    }

    /// Returns the id of the stack that consists of a frame and its calling stack.
    fn step(
        &mut self,
        connection: &Connection,
        parent: Option<i64>,
        frame: i64,
    ) -> rusqlite::Result<i64> {
        if let Some(&id) = self.steps.get(&(parent, frame)) {
            return Ok(id);
        }
        let find = "SELECT id FROM stack WHERE frame = ?1 AND parent IS ?2";
        let found = connection
            .prepare_cached(find)?
            .query_row(params![frame, parent], |row| row.get(0))
            .optional()?;
        let id = match found {
            Some(id) => id,
            None => {
                connection
                    .prepare_cached("INSERT INTO stack (frame, parent) VALUES (?1, ?2)")?
                    .execute(params![frame, parent])?;
                connection.last_insert_rowid()
            }
        };
        if self.steps.len() >= MOST_STEPS {
            self.steps.clear();
        }
        self.steps.insert((parent, frame), id);
        Ok(id)
    }
}

fn class_named(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    find_or_insert_name(connection, "class", name)
}

/// Returns the row id of a name in a table of names.
fn find_or_insert_name(
    connection: &Connection,
    table: &'static str,
    name: &str,
) -> rusqlite::Result<i64> {
    let found = connection
        .prepare_cached(&format!("SELECT id FROM {table} WHERE name = ?1"))?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    connection
        .prepare_cached(&format!("INSERT INTO {table} (name) VALUES (?1)"))?
        .execute([name])?;
    Ok(connection.last_insert_rowid())
}

fn frame(
    connection: &Connection,
    class: i64,
    method: &str,
    file: Option<&str>,
    line: Option<i32>,
) -> rusqlite::Result<i64> {
    let find =
        "SELECT id FROM frame WHERE class = ?1 AND method = ?2 AND line IS ?4 AND file IS ?3";
    let found = connection
        .prepare_cached(find)?
        .query_row(params![class, method, file, line], |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    let add = "INSERT INTO frame (class, method, file, line) VALUES (?1, ?2, ?3, ?4)";
    connection
        .prepare_cached(add)?
        .execute(params![class, method, file, line])?;
    Ok(connection.last_insert_rowid())
}

/// Deletes unused names. Does nothing if the JVM of a run other than `own` may still be writing, because the writer in
/// that JVM relies on cached ids.
pub(crate) fn drop_names(connection: &Connection, own: i64, now_ms: i64) -> rusqlite::Result<()> {
    // Switch off foreign keys, because SQLite would otherwise search for references to each deleted name, which would
    // take too long.
    connection.pragma_update(None, "foreign_keys", false)?;
    let done = drop_unused(connection, own, now_ms);
    connection.pragma_update(None, "foreign_keys", true)?;
    done
}

fn drop_unused(connection: &Connection, own: i64, now_ms: i64) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let alive = transaction.prepare(ALIVE)?.exists([now_ms - SILENT, own])?;
    if alive {
        return Ok(());
    }
    transaction.execute_batch(
        "DELETE FROM site WHERE id NOT IN (SELECT site FROM site_tick UNION SELECT site FROM sample);
         DELETE FROM thread WHERE id NOT IN (SELECT thread FROM sample WHERE thread IS NOT NULL);
         WITH RECURSIVE used (id) AS (
             SELECT stack FROM site WHERE stack IS NOT NULL
             UNION SELECT parent FROM stack JOIN used ON used.id = stack.id WHERE parent IS NOT NULL)
         DELETE FROM stack WHERE id NOT IN (SELECT id FROM used);
         DELETE FROM frame WHERE id NOT IN (SELECT frame FROM stack);
         DELETE FROM class WHERE id NOT IN (SELECT class FROM site)
             AND id NOT IN (SELECT class FROM frame) AND id NOT IN (SELECT class FROM class_tick);",
    )?;
    transaction.commit()
}
