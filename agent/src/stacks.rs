//! Maps the current thread's stack to the id of a site, and signatures to ids of types.

use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heapdiff_sites::labels::{self, SEPARATOR};
use heapdiff_sites::packages::is_jdk;
use heapdiff_sites::types;
use heapdiff_sites::{Counter, Verbosity};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::counters::Counters;
use crate::heap::Blobs;
use crate::intern::{Interner, Pending};
use crate::jvmti::calls::{Class, Env, Ref};
use crate::jvmti::versions::{Redefinitions, Version, VirtualThreads};
use crate::jvmti::{Frame, Jvmti, RawFrame, Stack};
use crate::labels::{LABELS, Missing};
use crate::options::{Filter, Named};

/// Number of frames for which the agent has a buffer on the thread's own stack. A deeper stack is read into memory of
/// the C heap. A thread that is about to overflow its stack has only the JVM's reserve of 80 KB left, so the buffer
/// must be small.
const SHALLOW: usize = 64;
const SHARDS: usize = 16;
/// Maximum number of entries in each of the [`SHARDS`] caches of stacks. Each cache in this module is emptied when it
/// is full.
const MOST_STACKS: usize = 8192;
const MOST_METHODS: usize = 16_384;
const MOST_SIGNATURES: usize = 16_384;
/// Maximum number of class versions ([`Version`]) stored for one class name. Several loaders may define classes of the
/// same name.
const MOST_VERSIONS: usize = 64;
/// Maximum number of thread names. Further names have the id 0.
const MOST_THREADS: u64 = 16_384;
/// Maximum total size in bytes of all thread names with labels. Further names are stored without labels.
const MOST_LABELLED: u64 = 8 << 20;

/// Number of innermost frames that are read first to find the class whose code allocates. More frames are read only if
/// these frames are all JDK frames.
const FEW: usize = 8;

struct Method {
    id: u32,
    lines: Lines,
    /// The version of the method's class to which the line table in `lines` belongs.
    version: Arc<Version>,
    /// The result of the filter for the class of this method.
    named: Named,
    is_runtime: bool,
}

/// A method's line table: pairs of the bytecode index where a line begins and the line number.
#[derive(Default)]
struct Lines(Box<[(i64, i32)]>);

impl Lines {
    fn line(&self, location: i64) -> i32 {
        if location < 0 {
            return -1;
        }
        let after = self.0.partition_point(|&(start, _)| start <= location);
        after.checked_sub(1).map_or(0, |at| self.0[at].1.max(0))
    }
}

/// The site of a cached stack. It is valid until one of the classes in `versions`, whose line numbers the site
/// contains, is redefined.
#[derive(Clone)]
struct Known {
    site: u32,
    versions: Arc<[Arc<Version>]>,
}

/// The type of an object, and the filter's result for its class.
#[derive(Clone, Copy)]
pub(crate) struct Type {
    pub(crate) id: u32,
    named: Named,
    pub(crate) hidden: bool,
}

/// Looks up and stores the sites, types and thread names of samples.
pub(crate) struct Stacks {
    jvmti: Jvmti,
    depth: usize,
    verbosity: Verbosity,
    filter: Filter,
    virtual_threads: VirtualThreads,
    interner: Mutex<Interner>,
    /// Cached sites, by the 128-bit hash of the raw stack. Each site is in the heap, or it is 0 because the table of
    /// sites was full.
    stacks: [Mutex<FxHashMap<u128, Known>>; SHARDS],
    methods: Mutex<FxHashMap<usize, Arc<Method>>>,
    redefinitions: Redefinitions,
    /// The last known versions of classes, by the class's signature. Classes of different loaders can have the same
    /// signature, so there may be several.
    versions: Mutex<FxHashMap<String, Vec<Arc<Version>>>>,
    types: Mutex<FxHashMap<String, Type>>,
    /// Number of thread names.
    threads: Mutex<u64>,
    /// Total size in bytes of the thread names with labels.
    labelled: Mutex<u64>,
    blobs: Blobs,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores an entry in a cache. If the cache has `most` entries, it is emptied before. Removed entries are dropped after
/// the lock is released, because dropping a [`Version`] calls the JVM.
fn store<K: Eq + Hash, V>(cache: &Mutex<FxHashMap<K, V>>, most: usize, key: K, value: V) {
    let mut entries = lock(cache);
    let removed = if entries.len() >= most {
        std::mem::take(&mut *entries)
    } else {
        FxHashMap::default()
    };
    let replaced = entries.insert(key, value);
    drop(entries);
    drop((removed, replaced));
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
            redefinitions: Redefinitions::new(env),
            versions: Mutex::default(),
            types: Mutex::default(),
            threads: Mutex::new(0),
            labelled: Mutex::new(0),
            blobs,
        }
    }

    /// Returns the site of the current thread's stack, after the site was written to the heap. Returns 0 if the thread
    /// has no stack, or if there is no room for the site in the table or in the heap.
    pub(crate) fn site(&self, env: &Env<'_>, counters: &Counters) -> u32 {
        // Read one frame more than requested, to see whether the stack is deeper.
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
        let known = lock(shard).get(&key).cloned();
        if let Some(Known { site, versions }) = known
            && versions.iter().all(|version| version.is_current(env))
        {
            if site == 0 {
                counters.count(Counter::SitesFull);
            }
            return site;
        }
        let methods: Vec<_> = stack.frames().map(|f| self.current(env, f)).collect();
        // Read the stack again, because a class may have been redefined after the first reading. Then a frame that runs
        // old bytecode may have got lines of the new bytecode. The second reading shows this: the JVM has changed the
        // method id of such a frame.
        let mut again = vec![RawFrame::EMPTY; stack.raw().len()];
        let now = self.jvmti.stack(env, &mut again);
        let now = now.as_ref().map_or(&[][..], Stack::raw);
        let Some(site) = self.new_site(env, ([stack.raw(), now], &methods), cut, counters) else {
            counters.count(Counter::SitesFull);
            return 0;
        };
        let is_same = now == stack.raw();
        if is_same {
            let versions = versions_of(&methods);
            store(shard, MOST_STACKS, key, Known { site, versions });
        }
        site
    }

    /// Returns the site of a stack that is not in the cache. The caller has read `stack`, then looked up its line
    /// numbers, and then read the same stack again as `later`. If a frame differs between `stack` and `later`, its
    /// class may have been redefined meanwhile, so the frame gets no line number. Returns 0 if the table of sites is
    /// full, and `None` if the heap is full.
    fn new_site(
        &self,
        env: &Env<'_>,
        ([stack, later], methods): ([&[RawFrame]; 2], &[Option<Arc<Method>>]),
        cut: bool,
        counters: &Counters,
    ) -> Option<u32> {
        let mut pending = Pending::default();
        let site = {
            let mut interner = lock(&self.interner);
            let mut ids: Vec<u32> = Vec::with_capacity(methods.len());
            for (at, (frame, method)) in stack.iter().zip(methods).enumerate() {
                let line = match method {
                    Some(method) if self.verbosity == Verbosity::Line => {
                        let is_same = later.get(at) == Some(frame);
                        if is_same {
                            method.lines.line(frame.location())
                        } else {
                            0
                        }
                    }
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

    /// Writes the definitions in `pending` (of stacks, frames and names) to the heap. Returns true on success. After a
    /// failure, the next sample that needs these definitions writes them again.
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

    /// Returns the names of classes whose methods are in sampled stacks, in the form of Java source.
    pub(crate) fn classes(&self) -> FxHashSet<String> {
        let interner = lock(&self.interner);
        interner
            .classes_in_stacks()
            .map(|name| name.to_string())
            .collect()
    }

    /// Returns the method of a frame from the cache. Its lines may belong to an earlier version of its class.
    fn method(&self, env: &Env<'_>, frame: Frame<'_>) -> Option<Arc<Method>> {
        let known = lock(&self.methods).get(&frame.raw().method()).cloned();
        known.or_else(|| self.read_method(env, frame))
    }

    /// Returns a frame's method with the line table of the current version of its class.
    fn current(&self, env: &Env<'_>, frame: Frame<'_>) -> Option<Arc<Method>> {
        let known = lock(&self.methods).get(&frame.raw().method()).cloned();
        let known = known.filter(|method| method.version.is_current(env));
        known.or_else(|| self.read_method(env, frame))
    }

    /// Returns the current version of a class.
    fn version(
        &self,
        env: &Env<'_>,
        class: Ref<'_, Class>,
        signature: &str,
    ) -> Option<Arc<Version>> {
        let mut of_name = lock(&self.versions)
            .get(signature)
            .cloned()
            .unwrap_or_default();
        let known = of_name.iter().position(|version| version.is_of(env, class));
        if let Some(at) = known {
            if of_name[at].is_current(env) {
                return Some(Arc::clone(&of_name[at]));
            }
            of_name.swap_remove(at);
        }
        if of_name.len() >= MOST_VERSIONS {
            of_name.clear();
        }
        let version = Arc::new(Version::new(env, class, self.redefinitions).ok()?);
        of_name.push(Arc::clone(&version));
        // Another thread may have stored a version meanwhile. That version is lost, and is created again when it is
        // needed.
        store(
            &self.versions,
            MOST_SIGNATURES,
            signature.to_owned(),
            of_name,
        );
        Some(version)
    }

    /// Reads a frame's method from the JVM.
    fn read_method(&self, env: &Env<'_>, frame: Frame<'_>) -> Option<Arc<Method>> {
        let key = frame.raw().method();
        let declaring = self.jvmti.declaring(env, frame).ok()?;
        let signature = self.jvmti.class_signature(declaring.get()).ok()?;
        let version = self.version(env, declaring.get(), &signature)?;
        let found = self.jvmti.method(declaring.get(), frame).ok()?;
        let class = types::name_from_signature(&signature);
        let keeps_method = self.verbosity != Verbosity::Class;
        let name = if keeps_method { &found.name[..] } else { "" };
        let file = found.file.as_deref().filter(|_| keeps_method);
        let id = lock(&self.interner).method(&class, name, file);
        let lines = match self.verbosity {
            Verbosity::Line => Lines(found.lines),
            _ => Lines::default(),
        };
        let method = Arc::new(Method {
            id,
            lines,
            version,
            named: self.filter.match_name(Some(&class)),
            is_runtime: is_jdk(&class),
        });
        // Return the method, but do not cache it: its class may have been redefined while the lines were read.
        if !method.version.is_current(env) {
            return Some(method);
        }
        store(&self.methods, MOST_METHODS, key, Arc::clone(&method));
        Some(method)
    }

    /// Returns the [`Type`] of a class. The heap may not contain the type's name yet ([`Self::publish_class`] writes
    /// it).
    pub(crate) fn class(&self, class: Ref<'_, Class>, counters: &Counters) -> Type {
        let Ok(signature) = self.jvmti.class_signature(class) else {
            counters.count(Counter::NamesFull);
            return Type {
                id: 0,
                named: self.filter.match_name(None),
                hidden: false,
            };
        };
        if let Some(&known) = lock(&self.types).get(&signature) {
            return known;
        }
        let name = types::name_from_signature(&signature);
        let id = lock(&self.interner).class(&name);
        if id == 0 {
            counters.count(Counter::NamesFull);
        }
        let found = Type {
            id,
            named: self.filter.match_name(Some(&name)),
            hidden: types::is_hidden(&signature),
        };
        store(&self.types, MOST_SIGNATURES, signature, found);
        found
    }

    /// True if the filter accepts an object of this type. The current thread is allocating the object.
    pub(crate) fn passes(&self, env: &Env<'_>, class: Type) -> bool {
        self.filter.passes(class.named, || self.allocating(env))
    }

    /// Returns the filter's result for the class whose code allocates. This is the class of the innermost frame that is
    /// not a JDK frame. If the innermost [`SHALLOW`] frames are all JDK frames, it is the class of the innermost frame.
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
        first.unwrap_or_else(|| self.filter.match_name(None))
    }

    /// True if the boot loader defined the class.
    pub(crate) fn is_boot(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        self.jvmti.is_boot(env, class)
    }

    /// Writes a type's name to the heap if it is not there yet.
    pub(crate) fn publish_class(&self, env: &Env<'_>, id: u32, counters: &Counters) {
        let mut pending = Pending::default();
        lock(&self.interner).need_class(&mut pending, id);
        self.publish(env, pending, counters);
    }

    /// True if the thread is virtual.
    pub(crate) fn is_virtual(&self, env: &Env<'_>, thread: Ref<'_>) -> bool {
        self.virtual_threads.contain(env, thread)
    }

    /// Returns a thread's name by its id.
    pub(crate) fn thread_name(&self, id: u32) -> Option<Arc<str>> {
        lock(&self.interner).text_of(id).cloned()
    }

    /// Returns the id of a thread's name, after the name was written to the heap. Returns 0 if a platform
    /// thread has no name, or if there is no room for another name.
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
        let name = name.replace(SEPARATOR, " ");
        let id = self.name(env, &name, (&self.threads, 1, MOST_THREADS), counters);
        id.unwrap_or_else(|| {
            counters.count(Counter::NamesFull);
            0
        })
    }

    /// Returns the id of a thread's name with labels. `name` is the id of the name without labels. If there is no room
    /// for the name with labels, returns `name`.
    pub(crate) fn labelled(
        &self,
        env: &Env<'_>,
        name: u32,
        labels: u32,
        counters: &Counters,
    ) -> u32 {
        let Some(labels) = LABELS.labels(labels) else {
            return name;
        };
        let text = self.thread_name(name).unwrap_or_default();
        let text = labels::join(&text, &labels);
        let size = text.len() as u64;
        match self.name(env, &text, (&self.labelled, size, MOST_LABELLED), counters) {
            Some(0) => name,
            Some(id) => id,
            None => {
                LABELS.warn(Missing::Names);
                name
            }
        }
    }

    /// Returns the id of a name, after the name was written to the heap. Returns 0 if the heap is full. A new name adds
    /// `size` to `sum`. Returns `None` for a new name if `sum` would exceed `most`, or if the table of names is full.
    fn name(
        &self,
        env: &Env<'_>,
        name: &str,
        (sum, size, most): (&Mutex<u64>, u64, u64),
        counters: &Counters,
    ) -> Option<u32> {
        let mut pending = Pending::default();
        let id = {
            let mut interner = lock(&self.interner);
            let known = interner.string_count();
            let mut sum = lock(sum);
            let id = if *sum + size <= most {
                interner.string(name)
            } else {
                interner.existing_id(name)
            };
            if interner.string_count() > known {
                *sum += size;
            }
            interner.need_string(&mut pending, id);
            id
        };
        if id == 0 {
            return None;
        }
        Some(if self.publish(env, pending, counters) {
            id
        } else {
            0
        })
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

/// Returns the versions of all classes with lines in a stack, without duplicates.
fn versions_of(methods: &[Option<Arc<Method>>]) -> Arc<[Arc<Version>]> {
    let methods = methods.iter().flatten();
    let with_lines = methods.filter(|method| !method.lines.0.is_empty());
    let mut versions: Vec<_> = with_lines.map(|m| Arc::clone(&m.version)).collect();
    versions.sort_unstable_by_key(Arc::as_ptr);
    versions.dedup_by(|a, b| Arc::ptr_eq(a, b));
    versions.into()
}

/// Hashes a stack to 128 bits with two independent multiplicative hashes.
///
/// With 128 bits, a collision among a hundred thousand cached stacks is about as likely as a hardware error. The two
/// hashes do not depend on each other, so the CPU computes them in parallel. Each step is invertible. So if two stacks
/// differ in only one frame, both halves of their hashes differ.
fn hash(frames: &[RawFrame], cut: bool) -> u128 {
    let (mut a, mut b) = (0x243f_6a88_85a3_08d3_u64, u64::from(cut));
    for frame in frames {
        // Bytecode indexes are less than 2^16, or -1. Method ids are addresses below 2^48.
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

    /// Tests all orders of frames: of methods with close and with distant ids, at the first and the last bytecode
    /// index, and of native methods.
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
        let method = Lines(Box::new([(0, 10), (5, 11), (9, 10)]));
        let lines: Vec<i32> = [-1, 0, 4, 5, 8, 9, 100].map(|l| method.line(l)).into();
        assert_eq!(lines, [-1, 10, 10, 11, 11, 10, 10]);
        let bare = Lines::default();
        assert_eq!((bare.line(7), bare.line(-1)), (0, -1));
    }
}
