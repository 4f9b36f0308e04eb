//! How the JVM lays out arrays, so that a hook can tell how large one is.

use heapdiff_bytecode::{ClassName, Kind};

use crate::jvmti::Environment;
use crate::jvmti::calls::{Env, JniError, Result};

/// The smallest place of the first element that there is.
pub(crate) const SMALLEST_BASE: i64 = 12;

/// Arrays of this JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Sizes are multiples of it.
    pub(crate) alignment: i64,
    /// Where the first element is: of arrays of one byte each, of two, four, eight, and of references.
    bases: [i32; 5],
    /// Bytes of a reference, as a power of two.
    reference: i32,
}

impl Layout {
    /// Asks the JVM.
    pub(crate) fn of(environment: &Environment, env: &Env<'_>) -> Result<Self> {
        let class = env.class(c"jdk/internal/misc/Unsafe")?;
        let ask = |name| env.static_int(class.get(), name);
        let bases = [
            ask(c"ARRAY_BYTE_BASE_OFFSET")?,
            ask(c"ARRAY_SHORT_BASE_OFFSET")?,
            ask(c"ARRAY_INT_BASE_OFFSET")?,
            ask(c"ARRAY_LONG_BASE_OFFSET")?,
            ask(c"ARRAY_OBJECT_BASE_OFFSET")?,
        ];
        let reference = ask(c"ARRAY_OBJECT_INDEX_SCALE")?;
        // The sizes of arrays of bytes go up in steps.
        let size = |length| {
            let array = env.bytes(length)?;
            environment.object_size(array.get().any()).ok_or_else(unfit)
        };
        let first = size(0)?;
        let mut alignment = 0;
        for length in 1..=256 {
            let next = size(length)?;
            if next != first {
                alignment = next - first;
                break;
            }
        }
        Self::checked(alignment, bases, reference).ok_or_else(unfit)
    }

    /// What the numbers of sites can tell.
    fn checked(alignment: i64, bases: [i32; 5], reference: i32) -> Option<Self> {
        let is_base = |base: &i32| matches!(base, 12 | 16 | 20 | 24);
        let reference = match reference {
            4 => 2,
            8 => 3,
            _ => return None,
        };
        let fits = bases.iter().all(is_base) && matches!(alignment, 8 | 16 | 32 | 64 | 128 | 256);
        fits.then_some(Self {
            alignment,
            bases,
            reference,
        })
    }

    /// The number of a site in the hooks: which one in the upper bits, where the first element is in two, and the bytes of an
    /// element, as a power of two, in the last two.
    pub(crate) fn number(&self, site: u32, kind: Kind, class: &ClassName<'_>) -> Option<i32> {
        let number = i32::try_from(site).ok()?.checked_mul(16)?;
        match kind {
            Kind::Object | Kind::Returned(_) => Some(number),
            Kind::Array | Kind::Level(_) => Some(number | self.elements(&class.to_bytes())?),
        }
    }

    /// The last four bits of that for arrays of a class.
    pub(crate) fn elements(&self, class: &[u8]) -> Option<i32> {
        let shift = match class.get(1)? {
            b'Z' | b'B' => 0,
            b'S' | b'C' => 1,
            b'I' | b'F' => 2,
            b'J' | b'D' => 3,
            _ => return Some((self.bases[4] - 12) | self.reference),
        };
        let base = self.bases.get(shift)? - 12;
        Some(base | i32::try_from(shift).ok()?)
    }
}

fn unfit() -> JniError {
    JniError::Unfit("the layout of arrays".to_owned())
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn what_is_not_known_is_refused() {
        let bases = [16, 16, 16, 16, 16];
        assert!(Layout::checked(8, bases, 4).is_some());
        assert!(Layout::checked(8, [20, 20, 20, 24, 20], 8).is_some());
        assert!(Layout::checked(0, bases, 4).is_none());
        assert!(Layout::checked(8, bases, 5).is_none());
        assert!(Layout::checked(8, [28, 16, 16, 16, 16], 4).is_none());
    }
}
