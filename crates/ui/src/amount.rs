//! Objects and bytes, and which of the two is drawn.

/// Objects and bytes; estimates, as all figures of a trace that was not taken at interval 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(crate) fn of(self, measure: Measure) -> i64 {
        match measure {
            Measure::Objects => self.objects,
            Measure::Bytes => self.bytes,
        }
    }
}

impl From<heapdiff_trace::read::Amount> for Amount {
    fn from(amount: heapdiff_trace::read::Amount) -> Self {
        Self {
            objects: signed(amount.objects),
            bytes: signed(amount.bytes),
        }
    }
}

/// A trace's figure as a signed number; the largest where it does not fit.
pub(crate) fn signed(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Objects,
    Bytes,
}
