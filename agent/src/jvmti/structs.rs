//! What HotSpot tells debuggers of its own structures: a table that its library exports.

use std::ffi::{CStr, c_char, c_void};

/// Entries that are looked at at most: there are some two thousand.
const MOST: usize = 20_000;

/// What the library exports under a name.
fn exported(name: &CStr) -> Option<*const c_void> {
    // SAFETY: the name ends with a zero byte; the JVM's library stays in memory.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!place.is_null()).then_some(place.cast_const())
}

/// A number that the library exports.
fn number(name: &CStr) -> Option<usize> {
    let place = exported(name)?.cast::<u64>();
    // SAFETY: HotSpot's numbers about its tables are `uint64_t`, set before any agent is loaded.
    usize::try_from(unsafe { place.read_unaligned() }).ok()
}

/// Where in a class's object the JVM keeps the address of what it knows of the class: no two classes that are loaded have it in
/// common. `None` where HotSpot does not say.
pub(crate) fn klass_offset() -> Option<i64> {
    let mut entry = {
        let table = exported(c"gHotSpotVMStructs")?.cast::<*const u8>();
        // SAFETY: it is a pointer to the first entry.
        unsafe { table.read_unaligned() }
    };
    let stride = number(c"gHotSpotVMStructEntryArrayStride")?;
    let kind = number(c"gHotSpotVMStructEntryTypeNameOffset")?;
    let field = number(c"gHotSpotVMStructEntryFieldNameOffset")?;
    let address = number(c"gHotSpotVMStructEntryAddressOffset")?;
    if entry.is_null() || stride == 0 || stride > 1024 || kind.max(field).max(address) >= stride {
        return None;
    }
    // SAFETY: each entry has as many bytes as the library says, with pointers at the places that it names; the last has none
    // for its type. Those are texts that end with a zero byte, and never change.
    let text = |entry: *const u8, at: usize| unsafe {
        let text = entry.add(at).cast::<*const c_char>().read_unaligned();
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    for _ in 0..MOST {
        let of = text(entry, kind)?;
        if of == c"java_lang_Class" && text(entry, field) == Some(c"_klass_offset") {
            // SAFETY: as above; a static field's address.
            let place = unsafe { entry.add(address).cast::<*const i32>().read_unaligned() };
            if place.is_null() {
                return None;
            }
            // SAFETY: the field is an `int` of the JVM's, which it has set when it has started.
            let offset = unsafe { place.read_unaligned() };
            let fits = (8..=1024).contains(&offset) && offset % 8 == 0;
            return fits.then(|| offset.into());
        }
        // SAFETY: the one without a type has not come yet.
        entry = unsafe { entry.add(stride) };
    }
    None
}
