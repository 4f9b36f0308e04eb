//! Parts of a dump's report, made of a comparison with nothing.

use heapdiff_model::diff::Suspect;
use heapdiff_model::heap::{HeapSuspect, HeapWaste};

use crate::next_step;
use crate::waste::WasteSummary;

/// Returns a suspect of a comparison with nothing. `dump` is the dump's path.
pub(super) fn suspect(suspect: Suspect, rank: u32, dump: &str) -> HeapSuspect {
    let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
    HeapSuspect {
        rank,
        // Large is not leaking: without a pattern there is nothing to fix.
        likely_fix: suspect
            .detector
            .as_ref()
            .and_then(|_| next_step::likely_fix(&suspect)),
        next: next_step::commands(&suspect, dump),
        holder_id: suspect.holder_id,
        objects: last(&suspect.objects),
        shallow_bytes: last(&suspect.shallow_bytes),
        retained_bytes: last(&suspect.retained_bytes),
        off_heap_bytes: last(&suspect.off_heap_bytes),
        reasons: suspect.reasons,
        root: suspect.root,
        path: suspect.path,
        holder: suspect.holder,
        class: suspect.class,
        detector: suspect.detector,
        holders: suspect.holders,
        also_held_by: suspect.also_held_by,
        stacks: suspect.stacks,
        coverage: suspect.coverage.into(),
        allocated_through: suspect.allocated_through,
    }
}

/// The kinds of waste that there are, the most to be won first.
pub(super) fn waste(summary: &WasteSummary) -> Vec<HeapWaste> {
    let all = WasteSummary::compared(std::slice::from_ref(summary), 1).waste;
    let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
    let rows = all.kinds.into_iter().map(|row| HeapWaste {
        kind: row.kind.into(),
        objects: last(&row.objects),
        bytes_to_win: last(&row.bytes_to_win),
        holder: row.holders.into_iter().next().map(|h| h.holder),
    });
    rows.filter(|row| row.bytes_to_win > 0).collect()
}
