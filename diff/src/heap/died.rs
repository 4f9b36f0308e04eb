//! Finds the thread whose allocation failed, in a dump that the JVM wrote for an `OutOfMemoryError`.
//!
//! In such a dump, HotSpot adds a frame of the error's constructor to the stack of that thread. A thread that really
//! runs this constructor has further frames on top of this one: the constructors that it calls, and the method that
//! fills in the stack trace. So if the constructor is the innermost frame of a thread, the allocation of this thread
//! failed. Nothing else in a dump identifies this thread.

use heapdiff_model::heap::Died;
use hprof::answers::Thread;

/// Returns the thread whose allocation failed; `None` if the dump does not show it.
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
