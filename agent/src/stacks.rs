//! From the current thread's stack to the id of a site, and from signatures to ids of types.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapdiff_sites::types;
use heapdiff_sites::{Counter, Verbosity};
use rustc_hash::FxHashMap;

use crate::counters::Counters;
use crate::heap::Blobs;
use crate::intern::{Interner, Pending};
use crate::jvmti::calls::{Class, Env, Ref};
use crate::jvmti::java::VirtualThreads;
use crate::jvmti::{Frame, Jvmti, RawFrame, Stack};
use crate::options::{Filter, Named};

/// Frames kept on the thread's own stack; deeper walks take memory from the C heap. A thread that is
/// about to overflow its stack has the JVM's 80 KB of reserve left.
const SHALLOW: usize = 64;
const SHARDS: usize = 16;
/// Caches are emptied when they have so many entries.
const MOST_STACKS: usize = 8192;
const MOST_METHODS: usize = 16_384;
const MOST_SIGNATURES: usize = 16_384;
/// Names of threads; what is beyond has the id 0.
const MOST_THREADS: u64 = 16_384;

/// Frames that are looked at first for the class whose code allocates.
const FEW: usize = 8;
/// How names of the runtime's classes begin: what they allocate they allocate for who calls them.
const RUNTIME: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

struct Method {
    id: u32,
    lines: Box<[(i64, i32)]>,
    /// What the filter says of its class.
    named: Named,
    is_runtime: bool,
}

impl Method {
    fn line(&self, location: i64) -> i32 {
        if location < 0 {
            return -1;
        }
        let after = self.lines.partition_point(|&(start, _)| start <= location);
        after.checked_sub(1).map_or(0, |at| self.lines[at].1.max(0))
    }
}

/// A type and what the filter says of it.
#[derive(Clone, Copy)]
pub(crate) struct Type {
    pub(crate) id: u32,
    named: Named,
    pub(crate) hidden: bool,
}

/// Everything that has names.
pub(crate) struct Stacks {
    jvmti: Jvmti,
    depth: usize,
    verbosity: Verbosity,
    filter: Filter,
    virtual_threads: VirtualThreads,
    interner: Mutex<Interner>,
    /// Raw stacks (hashed to 128 bits) to sites that are in the heap.
    stacks: [Mutex<FxHashMap<u128, u32>>; SHARDS],
    methods: Mutex<FxHashMap<usize, Arc<Method>>>,
    types: Mutex<FxHashMap<String, Type>>,
    threads: Mutex<u64>,
    blobs: Blobs,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stacks {
    pub(crate) fn new(
        env: &Env<'_>,
        jvmti: Jvmti,
        (depth, verbosity, filter): (usize, Verbosity, Filter),
        blobs: Blobs,
    ) -> Self {
        Self {
            jvmti,
            depth,
            verbosity,
            filter,
            virtual_threads: VirtualThreads::new(env),
            interner: Mutex::default(),
            stacks: Default::default(),
            methods: Mutex::default(),
            types: Mutex::default(),
            threads: Mutex::new(0),
            blobs,
        }
    }

    /// The site of the current thread's stack; it is in the heap when this returns. 0 if there is none.
    pub(crate) fn site(&self, env: &Env<'_>, counters: &Counters) -> u32 {
        // One more than asked for tells whether the stack is deeper.
        let mut shallow = [RawFrame::EMPTY; SHALLOW + 1];
        let mut deep = Vec::new();
        let buffer = if self.depth <= SHALLOW {
            &mut shallow[..=self.depth]
        } else {
            deep.resize(self.depth + 1, RawFrame::EMPTY);
            &mut deep[..]
        };
        let stack = match self.jvmti.stack(env, buffer) {
            Ok(stack) if !stack.raw().is_empty() => stack,
            _ => {
                counters.count(Counter::NoStack);
                return 0;
            }
        };
        let cut = stack.raw().len() > self.depth;
        let stack = stack.top(self.depth);
        let key = hash(stack.raw(), cut);
        let shard = &self.stacks[usize::from(key.to_le_bytes()[0]) % SHARDS];
        let known = lock(shard).get(&key).copied();
        if let Some(site) = known {
            if site == 0 {
                counters.count(Counter::SitesFull);
            }
            return site;
        }
        let Some(site) = self.new_site(env, stack, cut, counters) else {
            counters.count(Counter::SitesFull);
            return 0;
        };
        let mut stacks = lock(shard);
        if stacks.len() >= MOST_STACKS {
            stacks.clear();
        }
        stacks.insert(key, site);
        site
    }

    /// The site of a stack not met lately; 0 if the table is full, `None` if the heap is.
    fn new_site(
        &self,
        env: &Env<'_>,
        stack: Stack<'_, '_>,
        cut: bool,
        counters: &Counters,
    ) -> Option<u32> {
        let methods: Vec<Option<Arc<Method>>> = stack
            .frames()
            .map(|frame| self.method(env, frame))
            .collect();
        let mut pending = Pending::default();
        let site = {
            let mut interner = lock(&self.interner);
            let mut ids: Vec<u32> = Vec::with_capacity(methods.len());
            for (frame, method) in stack.raw().iter().zip(&methods) {
                let line = match (self.verbosity, method) {
                    (Verbosity::Line, Some(method)) => method.line(frame.location()),
                    _ => 0,
                };
                let id = interner.frame(method.as_ref().map_or(0, |m| m.id), line);
                if self.verbosity != Verbosity::Class || ids.last() != Some(&id) {
                    ids.push(id);
                }
            }
            let site = interner.site(&ids, cut);
            interner.need_site(&mut pending, site);
            counters.raise(Counter::Sites, interner.site_count() as u64);
            site
        };
        if site == 0 {
            counters.count(Counter::SitesFull);
        }
        self.publish(env, pending, counters).then_some(site)
    }

    /// Writes definitions to the heap. Whether that worked; if not, they are tried again with the next use.
    fn publish(&self, env: &Env<'_>, mut pending: Pending, counters: &Counters) -> bool {
        if pending.batch.is_empty() {
            return true;
        }
        let bytes = std::mem::take(&mut pending.batch).finish();
        let written = self.blobs.write(env, &bytes, counters);
        if written {
            lock(&self.interner).publish(&pending);
        }
        written
    }

    fn method(&self, env: &Env<'_>, frame: Frame<'_>) -> Option<Arc<Method>> {
        let key = frame.raw().method();
        if let Some(method) = lock(&self.methods).get(&key) {
            return Some(Arc::clone(method));
        }
        let found = self.jvmti.method(env, frame).ok()?;
        let class = types::of_signature(&found.class_signature);
        let keeps_method = self.verbosity != Verbosity::Class;
        let name = if keeps_method { &found.name[..] } else { "" };
        let file = found.file.as_deref().filter(|_| keeps_method);
        let id = lock(&self.interner).method(&class, name, file);
        let lines = match self.verbosity {
            Verbosity::Line => found.lines,
            _ => Box::default(),
        };
        let method = Arc::new(Method {
            id,
            lines,
            named: self.filter.named(Some(&class)),
            is_runtime: RUNTIME.iter().any(|start| class.starts_with(start)),
        });
        let mut methods = lock(&self.methods);
        if methods.len() >= MOST_METHODS {
            methods.clear();
        }
        methods.insert(key, Arc::clone(&method));
        Some(method)
    }

    /// The type of a class; its name is not in the heap yet.
    pub(crate) fn class(&self, class: Ref<'_, Class>, counters: &Counters) -> Type {
        let Ok(signature) = self.jvmti.class_signature(class) else {
            counters.count(Counter::NamesFull);
            return Type {
                id: 0,
                named: self.filter.named(None),
                hidden: false,
            };
        };
        if let Some(&known) = lock(&self.types).get(&signature) {
            return known;
        }
        let name = types::of_signature(&signature);
        let id = lock(&self.interner).class(&name);
        if id == 0 {
            counters.count(Counter::NamesFull);
        }
        let found = Type {
            id,
            named: self.filter.named(Some(&name)),
            hidden: types::is_hidden(&signature),
        };
        let mut types = lock(&self.types);
        if types.len() >= MOST_SIGNATURES {
            types.clear();
        }
        types.insert(signature, found);
        found
    }

    /// Whether the filter lets an object of this type pass that the current thread allocates.
    pub(crate) fn passes(&self, env: &Env<'_>, class: Type) -> bool {
        self.filter.passes(class.named, || self.allocating(env))
    }

    /// What the filter says of the class whose code allocates: that of the first frame outside of the runtime, or
    /// of the first frame where all are the runtime's. Mostly a few frames tell.
    fn allocating(&self, env: &Env<'_>) -> Named {
        let mut buffer = [RawFrame::EMPTY; SHALLOW];
        let mut first = None;
        for (seen, most) in [(0, FEW), (FEW, SHALLOW)] {
            let Ok(stack) = self.jvmti.stack(env, &mut buffer[..most]) else {
                break;
            };
            for frame in stack.frames().skip(seen) {
                let Some(method) = self.method(env, frame) else {
                    continue;
                };
                if !method.is_runtime {
                    return method.named;
                }
                first.get_or_insert(method.named);
            }
            if stack.raw().len() < most {
                break;
            }
        }
        first.unwrap_or_else(|| self.filter.named(None))
    }

    /// Whether the boot loader defined a class.
    pub(crate) fn is_boot(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        self.jvmti.is_boot(env, class)
    }

    /// Writes a type's name to the heap, if it is not there.
    pub(crate) fn publish_class(&self, env: &Env<'_>, id: u32, counters: &Counters) {
        let mut pending = Pending::default();
        lock(&self.interner).need_class(&mut pending, id);
        self.publish(env, pending, counters);
    }

    /// Whether a thread is a virtual one.
    pub(crate) fn is_virtual(&self, env: &Env<'_>, thread: Ref<'_>) -> bool {
        self.virtual_threads.contain(env, thread)
    }

    /// A thread's name by its id.
    pub(crate) fn thread_name(&self, id: u32) -> Option<Arc<str>> {
        lock(&self.interner).text_of(id).cloned()
    }

    /// The id of a thread's name, which is in the heap when this returns; 0 if it has none.
    pub(crate) fn thread(
        &self,
        env: &Env<'_>,
        thread: Ref<'_>,
        is_virtual: bool,
        counters: &Counters,
    ) -> u32 {
        let name = self.jvmti.thread_name(env, thread).unwrap_or_default();
        let name = match (name.is_empty(), is_virtual) {
            (false, _) => &name[..],
            (true, true) => "(virtual thread)",
            (true, false) => return 0,
        };
        let mut pending = Pending::default();
        let id = {
            let mut interner = lock(&self.interner);
            let known = interner.string_count();
            let mut threads = lock(&self.threads);
            let id = if *threads < MOST_THREADS {
                interner.string(name)
            } else {
                interner.known_string(name)
            };
            if interner.string_count() > known {
                *threads += 1;
            }
            interner.need_string(&mut pending, id);
            id
        };
        if id == 0 {
            counters.count(Counter::NamesFull);
        }
        if self.publish(env, pending, counters) {
            id
        } else {
            0
        }
    }
}

impl heapdiff_trace::Names for Stacks {
    fn class(&self, class: u32) -> Option<Arc<str>> {
        lock(&self.interner).class_name(class)
    }

    fn stack(&self, stack: u32) -> (Vec<heapdiff_trace::FrameName>, bool) {
        lock(&self.interner).frames_of(stack)
    }
}

/// Two multiplicative hashes side by side. With 128 bits two stacks in a cache of a hundred thousand share
/// one about as often as the machine errs.
///
/// Each takes a frame in one step, and the two do not wait for each other: what a step does to its
/// 64 bits can be undone, so two stacks that differ in one frame never share a half of the hash.
fn hash(frames: &[RawFrame], cut: bool) -> u128 {
    let (mut a, mut b) = (0x243f_6a88_85a3_08d3_u64, u64::from(cut));
    for frame in frames {
        // Bytecode indices are below 2^16, or -1; ids of methods are addresses, below 2^48.
        let word = (frame.method() as u64) ^ frame.location().cast_unsigned().rotate_left(48);
        a = (a ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        a ^= a >> 29;
        b = (b.rotate_left(23) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        b ^= b >> 32;
    }
    u128::from(a) << 64 | u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Near and far methods, the first and the last bytecodes, native methods; in every order.
    #[test]
    fn different_stacks_have_different_hashes() {
        let methods = [
            0x7f00_1234_5678,
            0x7f00_1234_5680,
            0x7f00_1234_5688,
            0x5581_0000_0010,
        ];
        let frames: Vec<(usize, i64)> = methods
            .iter()
            .flat_map(|&m| [-1, 0, 1, 2, 1000, 65_534].map(|l| (m, l)))
            .collect();
        let mut seen = std::collections::HashSet::new();
        let mut halves = [seen.clone(), seen.clone()];
        for &a in &frames {
            for stack in std::iter::once(vec![a]).chain(frames.iter().map(|&b| vec![a, b])) {
                let raw: Vec<RawFrame> = stack.iter().map(|&(m, l)| RawFrame::of(m, l)).collect();
                assert_ne!(hash(&raw, false), hash(&raw, true));
                let key = hash(&raw, false);
                assert!(seen.insert(key), "{stack:x?}");
                assert!(halves[0].insert(key >> 64), "{stack:x?}");
                assert!(halves[1].insert(key & u128::from(u64::MAX)), "{stack:x?}");
            }
        }
    }

    #[test]
    fn lines_of_bytecodes() {
        let of = |lines: Box<[(i64, i32)]>| Method {
            id: 1,
            lines,
            named: Filter::default().named(None),
            is_runtime: false,
        };
        let method = of(Box::new([(0, 10), (5, 11), (9, 10)]));
        let lines: Vec<i32> = [-1, 0, 4, 5, 8, 9, 100].map(|l| method.line(l)).into();
        assert_eq!(lines, [-1, 10, 10, 11, 11, 10, 10]);
        let bare = of(Box::default());
        assert_eq!((bare.line(7), bare.line(-1)), (0, -1));
    }
}
