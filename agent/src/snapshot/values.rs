//! Identifies value objects (JEP 401) in the callbacks of the heap walk.
//!
//! For other objects, the child stores an id as the object's tag. For value objects this is not possible: equal value
//! objects share one tag. Also, HotSpot searches the tags of a value class one by one, so tags for all its objects
//! would take quadratic time. Instead, the child reads the address of the reported object from HotSpot's data. The
//! pointer to the tag leads into a `CallbackWrapper` on HotSpot's stack, which refers to a `JvmtiHeapwalkObject`:
//!
//! ```text
//! CallbackWrapper         word -2: pointer to a JvmtiHeapwalkObject, word -1: size of the object, word 0: tag
//! TwoOopCallbackWrapper   word -2: pointer to that of the referrer,  word -1: unused,             word 0: its tag
//! JvmtiHeapwalkObject     address of the object or of its container, offset in the container, value class or null
//! ```
//!
//! HotSpot may change this layout, so [`target`] checks the layout at each callback. If the layout differs, the child
//! ends, and no dump is written.

use std::ptr::with_exposed_provenance;

use jni_sys::jlong;

/// Maximum distance in bytes between the tag of an object and the `JvmtiHeapwalkObject` that describes this object.
/// Both are on HotSpot's stack.
const NEAR: usize = 1 << 16;

/// A value object. It is identified by three numbers: the address of the object or of its container, the offset in the
/// container (0 if the value is not flattened), and the address of HotSpot's data about its class. The class is needed,
/// because a value at the start of another value has the same offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValueObject {
    pub(super) address: u64,
    pub(super) offset: u32,
    pub(super) class: u64,
}

impl ValueObject {
    pub(super) const fn is_flattened(self) -> bool {
        self.offset != 0
    }
}

/// The description of an object in a callback, as HotSpot stores it. `None` if the object is not a value object.
pub(super) type Described = Option<ValueObject>;

/// Returns the description of the object to which a reference leads. Returns `None` if the layout of HotSpot's data is
/// not the expected one.
///
/// # Safety
/// The JVM passed `tag` and `size` to a callback that has not returned.
// SAFETY: the function also reads the memory words before the tag. They are on the same stack as the tag.
pub(super) unsafe fn target(tag: *const jlong, size: jlong) -> Option<Described> {
    // SAFETY: the caller upholds the `# Safety` contract. The word is on the same stack as the tag.
    if unsafe { tag.sub(1).read_volatile() } != size {
        return None;
    }
    // SAFETY: the caller guarantees that the JVM passed `tag` to a callback that has not returned.
    unsafe { describe(tag) }
}

/// Returns the description of the object from which a reference comes. `from` points to the tag of this object.
///
/// # Safety
/// The JVM passed `from` to a callback that has not returned.
// SAFETY: the function also reads the memory words before the tag. They are on the same stack as the tag.
pub(super) unsafe fn referrer(from: *const jlong) -> Option<Described> {
    // SAFETY: the caller upholds the `# Safety` contract.
    unsafe { describe(from) }
}

/// Reads the description of an object. The second word before the object's tag points to the description.
///
/// # Safety
/// The JVM passed `tag` to a callback that has not returned.
// SAFETY: the function also reads the memory words before the tag. They are on the same stack as the tag.
unsafe fn describe(tag: *const jlong) -> Option<Described> {
    // SAFETY: the caller upholds the `# Safety` contract. The word is on the same stack as the tag.
    let pointer = unsafe { tag.sub(2).cast::<usize>().read_volatile() };
    if pointer.abs_diff(tag.addr()) > NEAR || !pointer.is_multiple_of(align_of::<u64>()) {
        return None;
    }
    let words = with_exposed_provenance::<u64>(pointer);
    // SAFETY: the pointer leads to an address near the tag, on the same stack. If the address is beyond the end of the
    // stack, the child ends with SIGSEGV, which harms nobody.
    let [address, offset, class] = [0, 1, 2].map(|at| unsafe { words.add(at).read_volatile() });
    if address == 0 || !address.is_multiple_of(8) {
        return None;
    }
    // The upper half of the second word is padding.
    let offset = (offset & u64::from(u32::MAX)) as u32;
    match (class, offset) {
        (0, 0) => Some(None),
        (0, _) => None,
        _ => Some(Some(ValueObject {
            address,
            offset,
            class,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated stack of HotSpot: a `JvmtiHeapwalkObject` (`described`), and a `CallbackWrapper` (`pointer`, `size`
    /// and `tag`).
    #[repr(C)]
    struct Stack {
        described: [u64; 3],
        pointer: usize,
        size: jlong,
        tag: jlong,
    }

    fn read(described: [u64; 3], size: jlong, distance: usize) -> Option<Described> {
        let mut stack = Stack {
            described,
            pointer: 0,
            size: 24,
            tag: 0,
        };
        stack.pointer = (&raw const stack.described).expose_provenance() + distance;
        // SAFETY: the words before the tag are fields of the same structure.
        unsafe { target((&raw const stack).cast::<jlong>().add(5), size) }
    }

    #[test]
    fn value_objects_are_told_from_other_objects() {
        let value = |offset| {
            Some(Some(ValueObject {
                address: 0x7000,
                offset,
                class: 0x900,
            }))
        };
        assert_eq!(read([0x7000, 0, 0x900], 24, 0), value(0));
        assert_eq!(read([0x7000, 0xabcd_0000_000c, 0x900], 24, 0), value(12));
        assert_eq!(read([0x7000, 0xabcd_0000_0000, 0], 24, 0), Some(None));
        assert!(value(12).flatten().is_some_and(ValueObject::is_flattened));
        assert!(!value(0).flatten().is_some_and(ValueObject::is_flattened));
    }

    #[test]
    fn an_unknown_layout_is_detected() {
        let usual = [0x7000, 0, 0x900];
        assert_eq!(read(usual, 32, 0), None, "another size");
        assert_eq!(read(usual, 24, NEAR + 64), None, "not on the stack");
        assert_eq!(read(usual, 24, 4), None, "not aligned");
        assert_eq!(read([0, 0, 0x900], 24, 0), None, "no address");
        assert_eq!(read([0x7001, 0, 0x900], 24, 0), None, "not an address");
        assert_eq!(
            read([0x7000, 12, 0], 24, 0),
            None,
            "an offset without a class"
        );
    }
}
