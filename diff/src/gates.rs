//! Limits on growth, called gates. The caller decides what happens when a limit is reached.

use heapdiff_model::diff::{Report, Suspect};

/// Limits on growth, called gates. The default has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Limit on growth, in bytes. The limit is reached if the heap, or the retained size of a suspect, grows by at
    /// least this number. The growth of a suspect includes the memory of its direct buffers.
    pub growth: Option<u64>,
    /// If true, no suspect may have the verdict `leak` or `growth`.
    pub suspect: bool,
}

/// Growth that reaches the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch<'a> {
    /// The heap or the suspect that grew.
    pub what: Grown<'a>,
    /// Bytes of growth.
    pub bytes: u64,
    /// The limit in bytes. Growth of this number of bytes, or more, is too much.
    pub limit: u64,
}

/// The quantity that was compared with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown<'a> {
    /// The heap as a whole.
    Heap {
        /// True if the growth of known suspects was subtracted.
        less_known: bool,
    },
    /// The retained bytes of one suspect, and the memory of its direct buffers outside of the heap.
    Suspect(&'a Suspect),
}

/// Suspects with the verdict `leak` or `growth`, which [`Gates::suspect`] does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grave<'a> {
    /// The first suspect with such a verdict.
    pub first: &'a Suspect,
    /// Number of suspects with such a verdict, including the first.
    pub count: usize,
}

impl Gates {
    /// True if at least one limit is set.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.growth.is_some() || self.suspect
    }

    /// True if this suspect reaches the limit on growth, or has a verdict that [`Gates::suspect`] does not allow.
    #[must_use]
    pub fn fails_gate(&self, suspect: &Suspect) -> bool {
        let too_much = |limit| growth_over_limit(suspect.growth_with_off_heap(), limit).is_some();
        self.growth.is_some_and(too_much) || self.suspect && suspect.verdict.is_leak_or_growth()
    }

    /// Returns the heap or the first suspect that grew by at least [`Gates::growth`]. Checks the heap first, then the
    /// suspects of the report, and then the suspects of `more`, which are not in the report. The growth of the `known`
    /// suspects is subtracted from the growth of the heap.
    #[must_use]
    pub fn growth_over_gate<'a>(
        &self,
        report: &'a Report,
        more: &'a [Suspect],
        known: impl IntoIterator<Item = &'a Suspect>,
    ) -> Option<TooMuch<'a>> {
        let limit = self.growth?;
        let known = known
            .into_iter()
            .map(|suspect| suspect.growth.retained_bytes.max(0))
            .fold(0, i64::saturating_add);
        let heap = (
            report.delta.shallow_bytes.saturating_sub(known),
            Grown::Heap {
                less_known: known > 0,
            },
        );
        let suspects = report.suspects.iter().chain(more);
        let suspects = suspects.map(|s| (s.growth_with_off_heap(), Grown::Suspect(s)));
        std::iter::once(heap)
            .chain(suspects)
            .find_map(|(bytes, what)| {
                let bytes = growth_over_limit(bytes, limit)?;
                Some(TooMuch { what, bytes, limit })
            })
    }

    /// Returns the first suspect with the verdict `leak` or `growth`, and the number of such suspects. Checks the
    /// suspects of the report first, and then `more`, which are not in the report. Returns `None` if there is no such
    /// suspect, or if [`Gates::suspect`] is not set.
    #[must_use]
    pub fn failing_suspects<'a>(
        &self,
        report: &'a Report,
        more: &'a [Suspect],
    ) -> Option<Grave<'a>> {
        let suspects = report.suspects.iter().chain(more);
        let mut grave = suspects.filter(|s| self.suspect && s.verdict.is_leak_or_growth());
        let first = grave.next()?;
        Some(Grave {
            first,
            count: 1 + grave.count(),
        })
    }
}

/// Returns the growth in bytes if it reaches the limit. Returns `None` if nothing grew, even if the limit is 0.
fn growth_over_limit(bytes: i64, limit: u64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|&b| b > 0 && b >= limit)
}
