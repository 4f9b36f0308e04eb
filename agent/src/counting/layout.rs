//! The JVM's array layout, from which a hook computes the size of an array.

use heapdiff_bytecode::{ClassName, Kind};

use crate::jvmti::Environment;
use crate::jvmti::calls::{Env, JniError, Result};

/// Smallest offset, in bytes, at which any JVM places the first element of an array.
pub(crate) const SMALLEST_BASE: i64 = 12;

/// The array layout of this JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Alignment of objects in bytes.
    pub(crate) alignment: i64,
    /// Offset of the first element of an array. There are values for elements of 1, 2, 4 and 8 bytes, and for
    /// references.
    bases: [i32; 5],
    /// Size of a reference in bytes, as a power of two.
    reference: i32,
}

impl Layout {
    /// Reads the array layout from the JVM.
    pub(crate) fn from_jvm(environment: &Environment, env: &Env<'_>) -> Result<Self> {
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
        // Sizes of byte arrays grow in steps of the alignment.
        let size = |length| {
            let array = env.bytes(length)?;
            environment
                .object_size(array.get().any())
                .ok_or_else(layout_error)
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
        Self::checked(alignment, bases, reference).ok_or_else(layout_error)
    }

    /// Returns the layout, or `None` if a site's number cannot encode this layout; see [`Self::number`].
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

    /// Returns the number that identifies a site in the hooks, or `None` if the number does not fit into 32 bits. Bits:
    ///
    /// ```text
    /// 31..4  index of the site
    ///  3..2  for arrays: (offset of the first element - 12) / 4
    ///  1..0  for arrays: log2 of the element's size in bytes
    /// ```
    pub(crate) fn number(&self, site: u32, kind: Kind, class: &ClassName<'_>) -> Option<i32> {
        let number = i32::try_from(site).ok()?.checked_mul(16)?;
        match kind {
            Kind::Object | Kind::Returned(_) => Some(number),
            Kind::Array | Kind::Level(_) => Some(number | self.elements(&class.to_bytes())?),
        }
    }

    /// Returns the lowest four bits of a site's number (see [`Self::number`]) if arrays of this class are allocated at
    /// the site.
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

fn layout_error() -> JniError {
    JniError::Unfit("the memory layout of arrays".to_owned())
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn unknown_layouts_are_refused() {
        let bases = [16, 16, 16, 16, 16];
        assert!(Layout::checked(8, bases, 4).is_some());
        assert!(Layout::checked(8, [20, 20, 20, 24, 20], 8).is_some());
        assert!(Layout::checked(0, bases, 4).is_none());
        assert!(Layout::checked(8, bases, 5).is_none());
        assert!(Layout::checked(8, [28, 16, 16, 16, 16], 4).is_none());
    }
}
