//! Reads the JVM's performance counters (the data of `jstat`). The counters are in memory that the JVM writes and every
//! thread may read at any time. So even GC callbacks, which must not call the JVM, may read the counters.
//!
//! The format is that of `sun.jvmstat.perfdata.monitor.v2_0`. With `-XX:-UsePerfData` there are no counters.

use std::ptr::NonNull;

use super::calls::{Any, Buffer, Env, Result, Value};

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const MAJOR: u8 = 2;
const PROLOGUE: usize = 32;
/// Maximum number of counters to search. Every JVM has fewer counters.
const MOST_ENTRIES: usize = 16_384;
/// Maximum length of a string counter that is read, in bytes.
pub(crate) const TEXT: usize = 64;

/// The counters' memory. The JVM never unmaps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Perf {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory lives as long as the process and is only read, one byte or word at a time.
unsafe impl Send for Perf {}
// SAFETY: the memory lives as long as the process and is only read, one byte or word at a time.
unsafe impl Sync for Perf {}

/// The location of a counter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    offset: usize,
    len: usize,
}

impl Perf {
    /// Returns the counters of this JVM, or `None` if this JVM has no counters.
    pub(crate) fn open(env: &Env<'_>) -> Option<Self> {
        let perf = Self::attach(env).ok().flatten()?;
        let magic: [u8; 4] = std::array::from_fn(|at| perf.byte(at));
        let native = u8::from(cfg!(target_endian = "little"));
        let known = magic == MAGIC && perf.byte(4) == native && perf.byte(5) == MAJOR;
        known.then_some(perf)
    }

    fn attach(env: &Env<'_>) -> Result<Option<Self>> {
        let class = env.class(c"jdk/internal/perf/Perf")?;
        let named = (c"getPerf", c"()Ljdk/internal/perf/Perf;");
        let perf = env.call_static_non_null::<Any>(class.get(), named, &[])?;
        // The method `attach` has two parameters: the process id, where 0 means this JVM, and the access mode. Later
        // JDKs have no mode, because they always open the counters read-only.
        let own = Value::Int(0);
        let mode = env.text("r")?;
        let old = c"(ILjava/lang/String;)Ljava/nio/ByteBuffer;";
        let arguments = [own, Value::Text(mode.get())];
        let buffer = match env.call_non_null::<Buffer>(perf.get(), (c"attach", old), &arguments) {
            Ok(buffer) => buffer,
            Err(_) => {
                let new = c"(I)Ljava/nio/ByteBuffer;";
                env.call_non_null(perf.get(), (c"attach", new), &[own])?
            }
        };
        let memory = buffer.get().memory(env);
        Ok(memory
            .filter(|&(_, len)| len >= PROLOGUE)
            .map(|(start, len)| Self { start, len }))
    }

    fn byte(&self, at: usize) -> u8 {
        if at >= self.len {
            return 0;
        }
        // SAFETY: the address is within the memory, which lives as long as the process. The JVM may write at the same
        // time. Therefore the read is volatile, and any value is acceptable.
        unsafe { self.start.as_ptr().add(at).read_volatile() }
    }

    fn int(&self, at: usize) -> Option<usize> {
        let bytes = std::array::from_fn(|i| self.byte(at + i));
        usize::try_from(i32::from_ne_bytes(bytes)).ok()
    }

    /// Returns the locations of the counters with these names.
    pub(crate) fn find<const N: usize>(&self, names: [&str; N]) -> [Option<Counter>; N] {
        let mut found = [None; N];
        let (Some(mut at), Some(count)) = (self.int(24), self.int(28)) else {
            return found;
        };
        for _ in 0..count.min(MOST_ENTRIES) {
            let (Some(len), Some(name), Some(vector), Some(data)) = (
                self.int(at),
                self.int(at + 4),
                self.int(at + 8),
                self.int(at + 16),
            ) else {
                break;
            };
            if len == 0 || at + len > self.len {
                break;
            }
            let size = if vector == 0 { 8 } else { vector };
            let name: Vec<u8> = (at + name..at + len)
                .map(|i| self.byte(i))
                .take_while(|&byte| byte != 0)
                .collect();
            if let Some(place) = names.iter().position(|n| n.as_bytes() == name)
                && data + size <= len
            {
                found[place] = Some(Counter {
                    offset: at + data,
                    len: size,
                });
            }
            at += len;
        }
        found
    }

    /// Returns the value of a numeric counter.
    pub(crate) fn number(&self, counter: Counter) -> u64 {
        let at = counter.offset;
        if counter.len != 8 || at + 8 > self.len {
            return 0;
        }
        #[allow(clippy::cast_ptr_alignment, reason = "checked below")]
        let place = self.start.as_ptr().wrapping_add(at).cast::<u64>();
        if !place.is_aligned() {
            return 0;
        }
        // SAFETY: the address is aligned and within the memory, which lives as long as the process. The JVM may write
        // at the same time. Therefore the read is volatile, and any value is acceptable.
        unsafe { place.read_volatile() }
    }

    /// Returns the value of a string counter, padded with zeros.
    pub(crate) fn text(&self, counter: Counter) -> [u8; TEXT] {
        let mut text = [0; TEXT];
        let len = counter.len.min(TEXT);
        for (at, byte) in text.iter_mut().take(len).enumerate() {
            *byte = self.byte(counter.offset + at);
            if *byte == 0 {
                break;
            }
        }
        text
    }
}
