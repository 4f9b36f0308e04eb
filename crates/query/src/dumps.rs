//! The dumps of a query, with their names.

use std::sync::Arc;

use hprof::ObjectId;

use crate::error::{Error, Result};
use crate::heap::Heap;

/// Name of the SQLite schema for a dump that has no name.
pub(crate) const MAIN: &str = "main";
/// Maximum number of dumps in a query, which is the number of databases that SQLite can attach.
const MOST: usize = 10;

/// Dumps that are queried together. A table name without the name of a dump refers to the first dump.
#[derive(Clone, Debug)]
pub struct Dumps {
    names: Vec<String>,
    heaps: Vec<Arc<Heap>>,
}

impl Dumps {
    /// Creates a set that contains one dump. The dump has no name in queries.
    #[must_use]
    pub fn one(heap: Arc<Heap>) -> Self {
        Self {
            names: Vec::new(),
            heaps: vec![heap],
        }
    }

    /// Creates a set of dumps with the given names.
    ///
    /// # Errors
    /// Returns the errors of [`check_names`].
    pub fn named(dumps: Vec<(String, Arc<Heap>)>) -> Result<Self> {
        let (names, heaps): (Vec<_>, Vec<_>) = dumps.into_iter().unzip();
        check_names(&names)?;
        Ok(Self { names, heaps })
    }

    /// Returns the names of the dumps. The list is empty if there is one dump without a name.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the first dump, which queries use for tables without the name of a dump.
    pub(crate) fn first(&self) -> Option<&Arc<Heap>> {
        self.heaps.first()
    }

    /// Returns the dump with this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Heap>> {
        let at = self
            .names
            .iter()
            .position(|n| n.eq_ignore_ascii_case(name))?;
        self.heaps.get(at)
    }

    /// True if an object of any dump has this id.
    pub(crate) fn have(&self, id: i64) -> bool {
        let id = ObjectId(id.cast_unsigned());
        let mut heaps = self.heaps.iter();
        heaps.any(|heap| heap.snapshot().find(id).is_some())
    }

    pub(crate) fn heap(&self, at: usize) -> Option<&Arc<Heap>> {
        self.heaps.get(at)
    }
}

/// Checks that queries can use the given names for dumps. Each name must be a word that SQL accepts without quotes, and
/// no name may occur twice.
///
/// # Errors
/// Returns an error if a name is invalid, or if there are more than 10 names.
pub fn check_names(names: &[String]) -> Result<()> {
    if names.len() > MOST {
        return Err(Error::TooManyDumps {
            dumps: names.len(),
            most: MOST,
        });
    }
    for (at, name) in names.iter().enumerate() {
        let bad = |reason| {
            Err(Error::Name {
                name: name.clone(),
                reason,
            })
        };
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !begins || !name.chars().all(word) || name.len() > 64 {
            return bad(
                "a name consists of letters, digits and _, and does not begin with a digit",
            );
        }
        let is_own = [MAIN, "temp"]
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name));
        if is_own || name.to_ascii_lowercase().starts_with("sqlite_") || is_keyword(name) {
            return bad("this word is reserved in SQLite");
        }
        if names[..at].iter().any(|n| n.eq_ignore_ascii_case(name)) {
            return bad("another dump already has this name");
        }
    }
    Ok(())
}

/// Returns true if a name is a keyword of SQL, so that SQLite accepts it as the name of a schema only in quotes.
fn is_keyword(name: &str) -> bool {
    let Ok(connection) = rusqlite::Connection::open_in_memory() else {
        return false;
    };
    connection
        .execute(&format!("ATTACH ':memory:' AS {name}"), [])
        .is_err()
        || connection
            .prepare(&format!("SELECT 1 FROM {name}.sqlite_master"))
            .is_err()
}
