//! Counts the GCs that a JVM writes to its log.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns the flag with which a JVM writes the log that [`Collections::from_log`] reads.
pub(super) fn flag(log: &Path) -> OsString {
    let mut flag = OsString::from("-Xlog:gc:file=");
    flag.push(log);
    // The flag turns off log rotation, so the JVM writes a single file, whatever its length.
    flag.push("::filecount=0");
    flag
}

/// Number of GCs during a JVM's whole life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Collections {
    /// Young GCs.
    pub(super) young: u32,
    /// GCs of the whole heap, whether concurrent or not.
    pub(super) other: u32,
    /// Number of times that a thread had to wait for free memory (ZGC allocation stalls).
    pub(super) stalls: u32,
}

impl Collections {
    pub(super) fn from_log(log: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
        Ok(Self::in_text(&text))
    }

    fn in_text(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.lines() {
            let has = |what: &str| line.contains(what);
            // The lines that G1, Parallel, Serial, ZGC and Shenandoah write when a GC has ended. Most of these lines
            // contain the used bytes before and after the GC, such as `100M->20M`.
            let ends = has("->");
            if ends && (has("Pause Young (") || has("Minor Collection (")) {
                all.young += 1;
            } else if ends
                && ["Pause Full (", "Major Collection (", "Garbage Collection ("]
                    .into_iter()
                    .any(has)
                || has("Concurrent Mark Cycle ")
                || has("Pause Final Mark (")
            {
                all.other += 1;
            } else if has("] Allocation Stall (") {
                all.stalls += 1;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests with log lines in the formats of JDK 17 and JDK 25.
    #[test]
    fn gc_lines_are_distinguished_from_other_lines() {
        let of = |text: &str| {
            let found = Collections::in_text(text);
            (found.young, found.other, found.stalls)
        };
        let g1 = "[0.1s][info][gc] Using G1\n\
            [0.2s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->5M(64M) 2.1ms\n\
            [0.3s][info][gc] GC(1) Pause Young (Concurrent Start) (G1 Evacuation Pause) 40M->8M(64M) 2.0ms\n\
            [0.3s][info][gc] GC(2) Concurrent Mark Cycle\n\
            [0.4s][info][gc] GC(2) Pause Remark 10M->10M(64M) 0.9ms\n\
            [0.4s][info][gc] GC(2) Concurrent Mark Cycle 6.4ms\n";
        assert_eq!(of(g1), (2, 1, 0));
        let generational = "[0.1s][info][gc] Using The Z Garbage Collector\n\
            [0.2s][info][gc] GC(0) Major Collection (Warmup)\n\
            [0.3s][info][gc] GC(0) Major Collection (Warmup) 8M(13%)->10M(16%) 0.006s\n\
            [0.4s][info][gc] GC(1) Minor Collection (Allocation Stall)\n\
            [0.5s][info][gc] Allocation Stall (main) 3.2ms\n\
            [0.5s][info][gc] GC(1) y: Relocation Stall (ZWorkerYoung#1) 0.3ms\n\
            [0.5s][info][gc] GC(1) Minor Collection (Allocation Stall) 60M(94%)->20M(31%) 0.009s\n\
            [0.6s][info][gc] GC(2) Minor Collection (Allocation Rate) Aborted\n";
        assert_eq!(of(generational), (1, 1, 1));
        let single = "[0.5s][info][gc] Allocation Stall (main) 3.2ms\n\
            [0.6s][info][gc] GC(3) Garbage Collection (Allocation Stall) 62M(97%)->30M(47%)\n";
        assert_eq!(of(single), (0, 1, 1));
        let shenandoah = "[0.2s][info][gc] GC(0) Pause Init Mark (unload classes) 0.1ms\n\
            [0.2s][info][gc] GC(0) Pause Final Mark (unload classes) 0.2ms\n\
            [0.2s][info][gc] GC(0) Concurrent cleanup 30M->12M(64M) 0.1ms\n";
        assert_eq!(of(shenandoah), (0, 1, 0));
        let serial = "[0.2s][info][gc] GC(0) Pause Young (Allocation Failure) 17M->3M(61M) 4.9ms\n\
            [0.3s][info][gc] GC(1) Pause Full (Allocation Failure) 30M->6M(61M) 9.0ms\n";
        assert_eq!(of(serial), (1, 1, 0));
    }
}
