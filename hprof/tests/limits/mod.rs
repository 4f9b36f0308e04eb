//! Measures the memory of a test: the bytes that are allocated on the Rust heap, and the growth of the process's
//! resident memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

struct Counting;

static USED: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

fn more(bytes: usize) {
    let used = USED.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
    MOST.fetch_max(used, Ordering::Relaxed);
}

// SAFETY: every call is passed to the system's allocator with the same arguments. So this allocator fulfils the
// contract because the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller guarantees a layout of non-zero size, which is all that `System.alloc` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller guarantees that `alloc` above returned `pointer` for `layout`, so it comes from
        // `System.alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns a lock, so that tests that measure memory or time run one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures the maximum memory since [`Peak::start`].
pub(crate) struct Peak {
    used: u64,
    mapped: u64,
}

impl Peak {
    pub(crate) fn start() -> Self {
        let used = USED.load(Ordering::Relaxed);
        MOST.store(used, Ordering::Relaxed);
        // Resets the kernel's high-water mark of the memory.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Self {
            used,
            mapped: status("VmHWM:"),
        }
    }

    /// Returns the maximum of allocated bytes, which includes neither mapped files nor the arrays of the analysis.
    #[allow(dead_code, reason = "not every test that measures asks for it")]
    pub(crate) fn allocated(&self) -> u64 {
        MOST.load(Ordering::Relaxed).saturating_sub(self.used)
    }

    /// Returns the larger of the allocated bytes and the growth of the process.
    pub(crate) fn bytes(&self) -> u64 {
        self.allocated()
            .max(status("VmHWM:").saturating_sub(self.mapped))
    }
}

/// Returns the value in a line of `/proc/self/status`, in bytes; 0 if there is no such line.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Processor time of all threads of a test. It depends less on other work of the machine than the elapsed time does.
/// Zero on systems without `/proc`.
pub(crate) struct Cpu(Duration);

impl Cpu {
    pub(crate) fn start() -> Self {
        Self(cpu_time())
    }

    pub(crate) fn took(&self) -> Duration {
        cpu_time().saturating_sub(self.0)
    }
}

/// Returns user and system time of this process, from kernel ticks of 10 ms.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The process name comes first, in brackets, and may contain spaces.
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
