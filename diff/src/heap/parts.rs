//! Parts of a dump's report, made of a comparison with nothing.

use heapdiff_model::heap::HeapWaste;

use crate::waste::WasteSummary;

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
