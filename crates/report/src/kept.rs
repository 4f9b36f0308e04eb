//! Sentences about the whole heap in the report of one dump. All formats use them.

use heapdiff_diff::sentence::Verdict;
use heapdiff_diff::{Died, HeapReport, HeapThread, Suspect};
use heapdiff_units::Size;

/// Returns a number of bytes as a percentage of the reachable bytes, with one decimal place.
pub(crate) fn part(bytes: u64, reachable: u64) -> String {
    let all = u128::from(reachable.max(1));
    let permille = u128::from(bytes) * 1000 / all;
    format!("{}.{} %", permille / 10, permille % 10)
}

/// Returns the percentage of [`part`] as a width in CSS, which has no space before the percent sign.
pub(crate) fn width(bytes: u64, reachable: u64) -> String {
    part(bytes, reachable).replace(' ', "")
}

/// Returns the sentence with the percentage of the heap that the suspects retain, and with the minimum retained size of
/// a suspect. `left_out` is true if the report leaves out suspects; `None` if this is not known.
pub(crate) fn sentence(report: &HeapReport, left_out: Option<bool>) -> String {
    let reachable = Size(report.snapshot.reachable_bytes);
    let least = Size(report.least_bytes);
    let is_large = |s: &&Suspect| s.retained() >= report.least_bytes;
    let (large, others): (Vec<_>, Vec<_>) = report.suspects.iter().partition(is_large);
    let inside = match (large.len() as u64, left_out) {
        (0, Some(true)) => Verdict::LeftOut { least },
        (0, None) => Verdict::NoneInReport { least },
        (0, Some(false)) => Verdict::NoAccumulation { least },
        (places, _) => Verdict::Accumulated {
            retained: Size(report.explained_bytes),
            reachable,
            share: part(report.explained_bytes, report.snapshot.reachable_bytes),
            places,
            least,
        },
    };
    if others.is_empty() {
        return inside.to_string();
    }
    let outside = Verdict::AccumulatedOffHeap {
        size: Size(others.iter().map(|s| s.off_heap()).sum()),
        places: others.len() as u64,
    };
    format!("{inside}. {outside}")
}

/// Returns the retained bytes of a suspect, as a number and as a percentage of the reachable bytes, and the off-heap
/// bytes that the suspect owns.
pub(crate) fn figures(suspect: &Suspect, report: &HeapReport) -> String {
    let bytes = suspect.retained();
    let part = part(bytes, report.snapshot.reachable_bytes);
    let inside = format!("{}, {part}", Size(bytes));
    match suspect.off_heap() {
        0 => inside,
        outside => format!("{inside}, and {} off heap", Size(outside)),
    }
}

/// Prefixes of frames in which HotSpot loads or defines a class, and so allocates class metadata.
const LOADS_CLASS: [&str; 6] = [
    "java.lang.ClassLoader.defineClass",
    "java.lang.ClassLoader.findBootstrapClass",
    "java.lang.Class.forName0",
    "jdk.internal.misc.Unsafe.define",
    "sun.misc.Unsafe.define",
    "sun.reflect.ClassDefiner.defineClass",
];

/// Returns the sentence about the error for which the JVM wrote the dump.
///
/// The dump does not contain the error's message. If the thread was loading a class, the metadata space may have been
/// full and not the heap.
pub(crate) fn error_sentence(died: &Died) -> String {
    let thread = died.thread.as_deref().unwrap_or("(unnamed)");
    let mut text = format!(
        "the JVM wrote this dump for an OutOfMemoryError: an allocation failed in thread {thread}"
    );
    let innermost = died.frames.first().map_or("", String::as_str);
    if LOADS_CLASS.iter().any(|call| innermost.starts_with(call)) {
        let call = innermost.split('(').next().unwrap_or_default();
        text.push_str(&format!(
            " while {call} loaded a class: the memory for class metadata (Metaspace) may have been full instead of the heap. The message of the error in the JVM's output shows which of the two was full"
        ));
    }
    text
}

/// Returns the largest local variable of a thread, as text.
pub(crate) fn local(thread: &HeapThread) -> String {
    match &thread.local {
        Some(local) => format!(
            "{}, {}, in {}",
            local.class,
            Size(local.retained_bytes),
            local.frame
        ),
        None => "no local variable".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::heap;
    use heapdiff_diff::ThreadHold;

    #[test]
    fn the_retained_share_is_reported() {
        let mut report = heap(1);
        let whole = Some(false);
        let told = "2.0 MiB of 4.0 MiB (50.0 %) accumulated in 1 place of at least 81.9 KiB";
        assert_eq!(sentence(&report, whole), told);
        // A direct buffer is a small object. Its memory is outside of the heap.
        let mut buffers = report.suspects[0].clone();
        (buffers.retained_bytes, buffers.off_heap_bytes) = (vec![100], vec![3 << 20]);
        assert_eq!(
            figures(&buffers, &report),
            "100 B, 0.0 %, and 3.0 MiB off heap"
        );
        assert_eq!(figures(&report.suspects[0], &report), "2.0 MiB, 50.0 %");
        report.suspects.push(buffers);
        let both =
            format!("{told}. 3.0 MiB of memory outside of the heap is owned by objects in 1 place");
        assert_eq!(sentence(&report, whole), both);
        report.suspects.clear();
        let none = "no accumulation found: no place retains 81.9 KiB or more";
        assert_eq!(sentence(&report, whole), none);
        assert!(!none.contains("accumulated in") && !told.contains("no place"));
        let asked =
            "all places that retain 81.9 KiB or more are left out by --top, --include or --exclude";
        assert_eq!(sentence(&report, Some(true)), asked);
        let saved = "the report has no place that retains 81.9 KiB or more";
        assert_eq!(sentence(&report, None), saved);
        assert_eq!(part(0, 0), "0.0 %");
    }

    #[test]
    fn the_thread_that_ran_out_of_memory_is_named() {
        let mut dead = Died {
            thread: Some("worker-3".to_owned()),
            frames: Vec::new(),
        };
        let told = "the JVM wrote this dump for an OutOfMemoryError: an allocation failed in thread worker-3";
        assert_eq!(error_sentence(&dead), told);
        dead.frames = vec!["a.B.run(B.java:7)".to_owned()];
        assert_eq!(error_sentence(&dead), told);
        dead.frames = vec!["java.lang.ClassLoader.defineClass1(Native Method)".to_owned()];
        let loading = format!(
            "{told} while java.lang.ClassLoader.defineClass1 loaded a class: the memory for class metadata (Metaspace) may have been full instead of the heap. The message of the error in the JVM's output shows which of the two was full"
        );
        assert_eq!(error_sentence(&dead), loading);
        dead.frames.clear();
        dead.thread = None;
        assert!(error_sentence(&dead).ends_with("in thread (unnamed)"));
    }

    #[test]
    fn the_content_of_a_local_variable_is_shown() {
        let mut thread = HeapThread {
            retained_bytes: 4096,
            ..HeapThread::default()
        };
        let none = "no local variable";
        assert_eq!(local(&thread), none);
        thread.local = Some(ThreadHold {
            frame: "a.B.run(B.java:7)".to_owned(),
            class: "a.List".to_owned(),
            retained_bytes: 2048,
        });
        let told = "a.List, 2.0 KiB, in a.B.run(B.java:7)";
        assert_eq!(local(&thread), told);
    }
}
