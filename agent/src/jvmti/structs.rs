//! Reads the table in which HotSpot describes its structures. The JVM's library exports this table for debuggers.

use std::ffi::{CStr, c_char, c_void};

/// Maximum number of entries to search. HotSpot's table has about two thousand entries.
const MOST: usize = 20_000;

/// Returns the address of a symbol that the JVM's library exports.
fn exported(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the name is NUL-terminated. The JVM's library stays loaded, so the address stays valid.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!place.is_null()).then_some(place.cast_const())
}

/// Returns the value of a number that the JVM's library exports, such as the size of a table entry.
fn number(name: &CStr) -> Option<usize> {
    let place = exported(name)?.cast::<u64>();
    // SAFETY: HotSpot's numbers about this table are `uint64_t` and are set before any agent is loaded.
    usize::try_from(unsafe { place.read_unaligned() }).ok()
}

/// Returns the offset of a hidden field in `Class` objects, or `None` if HotSpot does not export it. The field contains
/// the address of the JVM's data about the class. This address is unique among loaded classes.
pub(crate) fn klass_offset() -> Option<i64> {
    let mut entry = {
        let table = exported(c"gHotSpotVMStructs")?.cast::<*const u8>();
        // SAFETY: the symbol is a pointer to the first entry.
        unsafe { table.read_unaligned() }
    };
    let stride = number(c"gHotSpotVMStructEntryArrayStride")?;
    let kind = number(c"gHotSpotVMStructEntryTypeNameOffset")?;
    let field = number(c"gHotSpotVMStructEntryFieldNameOffset")?;
    let address = number(c"gHotSpotVMStructEntryAddressOffset")?;
    if entry.is_null() || stride == 0 || stride > 1024 || kind.max(field).max(address) >= stride {
        return None;
    }
    // SAFETY: each entry has `stride` bytes and contains pointers at the exported offsets. The type name of the last
    // entry is null. The other names are NUL-terminated strings that never change.
    let text = |entry: *const u8, at: usize| unsafe {
        let text = entry.add(at).cast::<*const c_char>().read_unaligned();
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    for _ in 0..MOST {
        let of = text(entry, kind)?;
        if of == c"java_lang_Class" && text(entry, field) == Some(c"_klass_offset") {
            // SAFETY: each entry has `stride` bytes and contains pointers at the exported offsets. This pointer is the
            // address of a static field, or null.
            let place = unsafe { entry.add(address).cast::<*const i32>().read_unaligned() };
            if place.is_null() {
                return None;
            }
            // SAFETY: the field is an `int` in the JVM, set during the JVM's start.
            let offset = unsafe { place.read_unaligned() };
            let fits = (8..=1024).contains(&offset) && offset % 8 == 0;
            return fits.then(|| offset.into());
        }
        // SAFETY: the current entry has a type name, so it is not the last one.
        entry = unsafe { entry.add(stride) };
    }
    None
}
