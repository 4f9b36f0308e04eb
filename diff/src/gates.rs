//! Gates: how much growth is too much. What is done about a gate that trips is for the caller to say.

use heapdiff_model::diff::{Report, Suspect};

/// What growth is refused; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Bytes by which neither the heap nor what one suspect retains may grow, the suspect's direct buffers included.
    pub growth: Option<u64>,
    /// Whether nothing may be taken for a leak or for growth.
    pub suspect: bool,
}

/// What grew by too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch<'a> {
    /// What grew.
    pub what: Grown<'a>,
    /// By how many bytes.
    pub bytes: u64,
    /// Bytes that are already too much.
    pub limit: u64,
}

/// What a limit was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown<'a> {
    /// The heap as a whole.
    Heap {
        /// Whether known growth was taken off.
        less_known: bool,
    },
    /// What one suspect retains, and its direct buffers have outside of the heap.
    Suspect(&'a Suspect),
}

/// Suspects of which there should be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grave<'a> {
    /// The first of them.
    pub first: &'a Suspect,
    /// How many there are with it.
    pub count: usize,
}

impl Gates {
    /// Whether there are any.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.growth.is_some() || self.suspect
    }

    /// Whether a gate trips for the sake of one suspect.
    #[must_use]
    pub fn trips(&self, suspect: &Suspect) -> bool {
        let too_much = |limit| reaches(suspect.growth_with_off_heap(), limit).is_some();
        self.growth.is_some_and(too_much) || self.suspect && suspect.verdict.is_grave()
    }

    /// What grew by [`Gates::growth`] or more: the heap as a whole first, less `known` suspects, then the first of
    /// the report's suspects, then of `more` suspects that are not in the report.
    #[must_use]
    pub fn too_much<'a>(
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
                let bytes = reaches(bytes, limit)?;
                Some(TooMuch { what, bytes, limit })
            })
    }

    /// What [`Gates::suspect`] refuses among the report's suspects and `more` that are not in it.
    #[must_use]
    pub fn grave<'a>(&self, report: &'a Report, more: &'a [Suspect]) -> Option<Grave<'a>> {
        let suspects = report.suspects.iter().chain(more);
        let mut grave = suspects.filter(|s| self.suspect && s.verdict.is_grave());
        let first = grave.next()?;
        Some(Grave {
            first,
            count: 1 + grave.count(),
        })
    }
}

/// The bytes of growth, if they reach the limit; nothing is never too much.
fn reaches(bytes: i64, limit: u64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|&b| b > 0 && b >= limit)
}
