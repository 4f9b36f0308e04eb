//! The thread whose allocation failed, in a dump that the JVM wrote for an `OutOfMemoryError`.
//!
//! HotSpot puts a frame on the stack of that thread in such a dump, as if it were in the error's constructor. A thread
//! that is in it for certain has the constructors that it calls, and what fills in the stack, above it. So a thread
//! whose innermost frame is the constructor is the one. Nothing else in a dump names it.

use heapdiff_model::heap::Died;
use hprof::answers::Thread;

/// The thread, where a dump says which it is.
pub(super) fn of(threads: &[Thread]) -> Option<Died> {
    threads.iter().find_map(|thread| {
        let (first, rest) = thread.frames.split_first()?;
        let (class, method) = (&*first.frame.class, &*first.frame.method);
        (class == "java.lang.OutOfMemoryError" && method == "<init>").then(|| Died {
            thread: thread.name.clone(),
            frames: rest.iter().map(|f| f.frame.to_string()).collect(),
        })
    })
}
