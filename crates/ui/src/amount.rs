//! Figures of the page: numbers of objects and bytes. The user chooses which of the two the page draws.

/// A number of objects and their bytes. Both are estimates unless the trace was recorded with interval 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

impl Amount {
    pub(crate) fn saturating_add(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    pub(crate) fn saturating_sub(self, other: Self) -> Self {
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

/// Converts an unsigned figure of a trace to a signed number. If the figure is too large, returns the largest signed
/// number.
pub(crate) fn signed(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

/// The quantity that the page draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Objects,
    Bytes,
}
