//! A SELECT over dumps, checked before they are read.

use std::path::PathBuf;

use heapdiff_query::Limits;

use super::Task;
use crate::failure::{Failure, Result};

/// The names that a statement has for dumps which have no others; `named` more are named by the user. One dump alone
/// needs none.
pub(crate) fn names(dumps: usize, named: usize) -> Vec<String> {
    match (dumps, named) {
        (1, 0) => Vec::new(),
        (2, 0) => ["before", "after"].map(str::to_owned).to_vec(),
        (n, _) => (1..=n).map(|n| format!("dump{n}")).collect(),
    }
}

impl Task {
    /// A mistake in the statement is told before the dumps are read, which may take a while.
    pub(crate) fn query(
        dumps: Vec<PathBuf>,
        names: Vec<String>,
        sql: String,
        limits: Limits,
    ) -> Result<Self> {
        let Some(first) = dumps.first() else {
            return Err(Failure::usage("no dump was given"));
        };
        heapdiff_query::check_over(&names, &sql).map_err(|e| Failure::query(first, e))?;
        Ok(Self::Query {
            dumps,
            names,
            sql,
            limits,
        })
    }
}
