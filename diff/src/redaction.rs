//! Rules for redacting the agent's objects. A redacted dump keeps the numbers in these objects, and the names of
//! classes, methods and files.

use heapdiff_sites::{CLASS, names_only, statics, usage};
use hprof::redaction::{KeptTables, Rules};

use crate::agent_objects::THREAD;

/// Returns the redaction rules. With them, the report on a redacted dump equals the report on the original dump.
#[must_use]
pub fn redaction_rules(numbers: bool) -> Rules<'static> {
    Rules {
        numbers,
        tables: vec![KeptTables {
            class: CLASS,
            figures: &[
                statics::COUNTERS,
                statics::TOTALS,
                statics::CLASS_TOTALS,
                statics::ALLOCATED,
                statics::SITE_TYPES,
                statics::COUNTED,
                statics::COUNTED_TOTALS,
                statics::RECENT_DIED,
                statics::RESERVOIR_DIED,
            ],
            held: &[[statics::USAGE, usage::CLASS, usage::fields::COUNTS]],
            names: &[statics::BLOBS, statics::COUNTED_SITES],
            clean: &names_only,
            texts: &[THREAD],
        }],
        ..Rules::default()
    }
}
