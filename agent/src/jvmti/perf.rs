//! The JVM's performance counters (what `jstat` reads): a piece of memory that the JVM writes and anybody
//! may read at any time, in a callback of the collector too, where nothing can be asked of the JVM.
//!
//! The format is that of `sun.jvmstat.perfdata.monitor.v2_0`. With `-XX:-UsePerfData` there is none.

use std::ptr::NonNull;

use super::calls::{Any, Buffer, Env, Result, Value};

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const MAJOR: u8 = 2;
const PROLOGUE: usize = 32;
/// More counters than any JVM has.
const MOST_ENTRIES: usize = 16_384;
/// The longest text that is read.
pub(crate) const TEXT: usize = 64;

/// The counters' memory. The JVM never unmaps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Perf {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory lives as long as the process, and is only read, a byte or word at a time.
unsafe impl Send for Perf {}
// SAFETY: as above.
unsafe impl Sync for Perf {}

/// Where a counter's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    offset: usize,
    len: usize,
}

impl Perf {
    /// The JVM's own; `None` if it keeps none.
    pub(crate) fn of_this_jvm(env: &Env<'_>) -> Option<Self> {
        let perf = Self::attach(env).ok().flatten()?;
        let magic: [u8; 4] = std::array::from_fn(|at| perf.byte(at));
        let native = u8::from(cfg!(target_endian = "little"));
        let known = magic == MAGIC && perf.byte(4) == native && perf.byte(5) == MAJOR;
        known.then_some(perf)
    }

    fn attach(env: &Env<'_>) -> Result<Option<Self>> {
        let class = env.class(c"jdk/internal/perf/Perf")?;
        let named = (c"getPerf", c"()Ljdk/internal/perf/Perf;");
        let perf = env.ask_class_for::<Any>(class.get(), named, &[])?;
        // 0 is this JVM. Later JDKs only read.
        let own = Value::Int(0);
        let mode = env.text("r")?;
        let old = c"(ILjava/lang/String;)Ljava/nio/ByteBuffer;";
        let arguments = [own, Value::Text(mode.get())];
        let buffer = match env.ask_for::<Buffer>(perf.get(), (c"attach", old), &arguments) {
            Ok(buffer) => buffer,
            Err(_) => {
                let new = c"(I)Ljava/nio/ByteBuffer;";
                env.ask_for(perf.get(), (c"attach", new), &[own])?
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
        // SAFETY: within the memory, which lives as long as the process. The JVM may write
        // at the same time: hence volatile, and any value is good.
        unsafe { self.start.as_ptr().add(at).read_volatile() }
    }

    fn int(&self, at: usize) -> Option<usize> {
        let bytes = std::array::from_fn(|i| self.byte(at + i));
        usize::try_from(i32::from_ne_bytes(bytes)).ok()
    }

    /// The counters of these names.
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

    /// A number's value.
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
        // SAFETY: within the memory and aligned; else as in `byte`.
        unsafe { place.read_volatile() }
    }

    /// A text's value, zeros after it.
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
