//! Evidence for or against a suspect: how it is held, known leak patterns, bounds, samples, and the use of collections.

use std::fmt;

use heapdiff_units::{Size, Span, grouped};

use super::{Change, Names};

/// One piece of evidence about a suspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    // How the content is held.
    /// The objects became larger. `before` and `now` are their numbers.
    GrewInPlace { before: u64, now: u64 },
    /// More objects are held by one holder.
    MoreObjects,
    /// More objects are held by holders, of which the first dump had `before`.
    MoreHeld { before: u64, now: u64 },
    /// One of several holders has most of the content.
    MostlyOne { holders: u64, class: String },
    /// The content is spread over holders. `before` is the mean in the first dump, in bytes; `None` if there is one dump only.
    Spread {
        holders: u64,
        class: String,
        mean: u64,
        before: Option<u64>,
    },
    /// Several paths lead to each object, and none of the fields on these paths has a name.
    SeveralPaths,
    /// Several fields lead to the same objects. `grew` are the fields whose objects grew, if not all did.
    Shared { fields: Names, grew: Names },
    /// Another field leads to the largest object.
    AlsoReachable { holder: String, other: String },
    /// A collection that holds the same objects grew.
    CollectionGrew { field: String, growth: Size },
    /// A collection of this size holds the same objects.
    CollectionHolds { field: String, size: Size },
    /// The dump's figures are those of the class, less those of other places.
    FiguresOfClass { dump: usize },
    /// The dump's figures are interpolated.
    FiguresInterpolated { dump: usize },
    /// One object is large by itself.
    OneLargeObject { class: String, size: Size },
    /// One object dominates many small ones.
    OneObject { class: String },
    /// Many objects, none of which has a large part.
    SmallParts {
        objects: u64,
        class: String,
        mean: Size,
    },
    /// Many objects that are not nested.
    Objects {
        objects: u64,
        class: String,
        mean: Size,
        largest: Size,
    },
    /// Each object holds the next one.
    Chain {
        objects: u64,
        class: String,
        mean: Size,
    },
    /// One object holds all others of its class.
    Tree {
        objects: u64,
        class: String,
        mean: Size,
    },
    /// A field of each object holds most of the content.
    HeldInEach {
        field: String,
        objects: u64,
        class: String,
    },

    // Memory outside of the heap.
    /// Metaspace of the classes that accumulate.
    Metaspace,
    /// Stacks of platform threads. `states` are the numbers of threads by state, if all are known.
    ThreadStacks {
        threads: u64,
        names: Vec<String>,
        states: Vec<(&'static str, usize)>,
    },
    /// Direct buffers and their memory. `before` is its size in the first dump; `None` if there is one dump only.
    DirectBuffers {
        size: Size,
        before: Option<Size>,
        buffers: Change,
    },

    // Known leak patterns.
    /// Views of a small part of large arrays.
    ArraySlices {
        small: u64,
        checked: u64,
        class: String,
        used: Size,
        pinned: Size,
    },
    /// Views of a small part of large lists.
    ListSlices {
        small: u64,
        checked: u64,
        class: String,
        used: u64,
        pinned: u64,
    },
    /// Keys of a hash table with equal fields.
    HashKeys {
        checked: u64,
        alike: u64,
        class: String,
    },
    /// Several loaders define the same class.
    ClassLoaders { class: String, loaders: Change },
    /// More class loaders of one class than before.
    MoreClassLoaders(Change),
    /// The field that holds the class loaders.
    LoadersPinned { field: String },
    /// Paths of `File.deleteOnExit`.
    DeleteOnExit(Change),
    /// Objects with a finalizer.
    Finalizers(Change),
    /// Actions of cleaners.
    CleaningActions(Change),
    /// Application code keeps the thread of the finalizers or cleaners busy.
    StuckThread { thread: String, frame: String },
    /// Tasks in the queue of a timer.
    TimerTasks(Change),
    /// Cancelled tasks in the queue of a timer.
    CancelledTasks {
        cancelled: u64,
        checked: u64,
        is_timer: bool,
    },
    /// Values of a `ThreadLocal`.
    ThreadLocal,
    /// The threads that hold thread locals. `at_least` is true if there can be more threads.
    KeptByThreads {
        names: Vec<String>,
        threads: usize,
        at_least: bool,
    },
    /// Parked virtual threads. `with_locals` is true if the dump has the frames of parked threads.
    VirtualThreads { threads: Change, with_locals: bool },
    /// Listeners in a field.
    Listeners { field: String, listeners: Change },
    /// Tasks in the queue of a thread pool.
    PoolTasks(Change),
    /// Elements of another queue.
    Queue(Change),
    /// Values of a weak map that refer to their keys.
    WeakMapValues { referring: u64, checked: u64 },

    // Bounds, and what looks like one.
    /// Soft references hold all of the content.
    SoftReferences { class: String },
    /// Soft references hold most of the content.
    MostlySoftReferences { class: String },
    /// Entries stay when soft references are cleared.
    StaysWhenCleared { class: String, stays: Size },
    /// The content of a `WeakHashMap`.
    WeakHashMap,
    /// The content is weak references.
    WeakReferences { class: String },
    /// A mostly empty array.
    EmptySlots { empty: u64, slots: u64 },
    /// A subclass of `LinkedHashMap`.
    EldestEntry { class: String },
    /// The bound of a collection of a known library.
    LibraryBound {
        class: String,
        field: String,
        bound: u64,
        is_weighed: bool,
    },
    /// A field with a bound that is reached if `is_full`. `held` is the number of objects for each holder.
    StatedBound {
        field: String,
        bound: u64,
        held: u64,
        is_full: bool,
        is_one: bool,
    },

    // Time.
    /// The JDK's own tables grow while classes are loaded.
    ClassesLoaded { classes: u64 },
    /// Samples of the first dump. `permille` is the part of all later samples that is alive, if next to all is.
    Samples {
        held: u64,
        kept: u64,
        permille: Option<u64>,
    },
    /// How collections are used. `watched` of `collections` are known.
    Usage {
        span: Span,
        watched: u64,
        collections: u64,
        put: u64,
        removed: u64,
        read: u64,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GrewInPlace { before, now } if before == now => {
                f.write_str("it grew in place: the number of objects did not change")
            }
            Self::GrewInPlace { before, now } => write!(
                f,
                "it grew in place: {} objects, {} before",
                grouped(*now),
                grouped(*before)
            ),
            Self::MoreObjects => f.write_str("more objects are held there"),
            Self::MoreHeld { before: 0, .. } => {
                f.write_str("more objects are held there, and what holds them is new as well")
            }
            Self::MoreHeld { before, now } if is_level(*before, *now) => {
                f.write_str("more objects are held there, while the number of holders did not change")
            }
            Self::MoreHeld { before, now } => write!(
                f,
                "more objects are held there, by {} holders, {} before",
                grouped(*now),
                grouped(*before)
            ),
            Self::MostlyOne { holders, class } => write!(
                f,
                "one of {} objects of class {class} holds most of it",
                grouped(*holders)
            ),
            Self::Spread {
                holders,
                class,
                mean,
                before,
            } => {
                write!(f, "spread over {} holders of one kind ({class}): ", grouped(*holders))?;
                match before {
                    Some(before) => write!(
                        f,
                        "{} bytes in each on average, {} before",
                        grouped(*mean),
                        grouped(*before)
                    ),
                    None => write!(f, "{} in each on average", Size(*mean)),
                }
            }
            Self::SeveralPaths => {
                f.write_str("no single object holds them; several paths lead to each")
            }
            Self::Shared { fields, grew } => {
                write!(f, "reachable through {fields}: clearing one of them frees nothing")?;
                match grew.0.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; of these {grew} grew"),
                }
            }
            Self::AlsoReachable { holder, other } => write!(
                f,
                "clearing {holder} alone does not free them: they are also reachable through {other}"
            ),
            Self::CollectionGrew { field, growth } => {
                write!(f, "the collection in {field} grew with them, by {growth}")
            }
            Self::CollectionHolds { field, size } => write!(
                f,
                "the collection in {field} holds them as well, and is {size} itself"
            ),
            Self::FiguresOfClass { dump } => write!(
                f,
                "in dump {dump} no one place holds these objects: its figures are what the totals of their class leave over"
            ),
            Self::FiguresInterpolated { dump } => write!(
                f,
                "in dump {dump} other paths held these objects: its figures are interpolated from the dumps around it"
            ),
            Self::OneLargeObject { class, size } => {
                write!(f, "one object is most of it: {class}, {size} itself")
            }
            Self::OneObject { class } => {
                write!(f, "one object of class {class} dominates many small objects")
            }
            Self::SmallParts {
                objects,
                class,
                mean,
            } => write!(
                f,
                "{} objects of class {class}, {mean} each on average, and no part below is large",
                grouped(*objects)
            ),
            Self::Objects {
                objects,
                class,
                mean,
                largest,
            } => write!(
                f,
                "it consists of {} objects of class {class}, {mean} each on average; the largest retains {largest}",
                grouped(*objects)
            ),
            Self::Chain {
                objects,
                class,
                mean,
            } => write!(
                f,
                "it consists of a chain of {} objects of class {class}, {mean} each on average",
                grouped(*objects)
            ),
            Self::Tree {
                objects,
                class,
                mean,
            } => write!(
                f,
                "it consists of {} objects of class {class}, of which one holds all others: {mean} each on average",
                grouped(*objects)
            ),
            Self::HeldInEach {
                field,
                objects,
                class,
            } => write!(
                f,
                "most of it is held by {field} in each of them: {} objects of class {class} in all",
                grouped(*objects)
            ),
            Self::Metaspace => f.write_str(
                "each class also takes metaspace, which is outside of the heap and not in these figures",
            ),
            Self::ThreadStacks {
                threads,
                names,
                states,
            } => thread_stacks(*threads, names, states, f),
            Self::DirectBuffers {
                size,
                before,
                buffers,
            } => {
                write!(f, "direct byte buffers: {size} outside of the heap")?;
                if let Some(before) = before {
                    write!(f, ", up from {before}")?;
                }
                write!(f, ", in {buffers}")
            }
            Self::ArraySlices {
                small,
                checked,
                class,
                used,
                pinned,
            } => write!(
                f,
                "slices that pin a large buffer: {} of {} objects of class {class} looked at use {used} of the {pinned} \
                 that their arrays have",
                grouped(*small),
                grouped(*checked)
            ),
            Self::ListSlices {
                small,
                checked,
                class,
                used,
                pinned,
            } => write!(
                f,
                "slices that pin a large list: {} of {} objects of class {class} looked at show {} of the {} elements \
                 that their lists have",
                grouped(*small),
                grouped(*checked),
                grouped(*used),
                grouped(*pinned)
            ),
            Self::HashKeys {
                checked,
                alike,
                class,
            } => write!(
                f,
                "hash keys without equals: of {} keys of class {class} looked at, {} have the same fields as another",
                grouped(*checked),
                grouped(*alike)
            ),
            Self::ClassLoaders { class, loaders } => match loaders.first {
                None => write!(
                    f,
                    "class loaders of former deployments may be kept: {class} is defined by {loaders}"
                ),
                Some(_) => write!(f, "class loader leak: {class} is defined by {loaders}"),
            },
            Self::MoreClassLoaders(loaders) => {
                write!(f, "more class loaders than before: {loaders}")
            }
            Self::LoadersPinned { field } => write!(f, "the loaders are pinned by {field}"),
            Self::DeleteOnExit(paths) => write!(
                f,
                "File.deleteOnExit: the JVM keeps the path of each such file until it exits, even when the file is gone \
                 ({paths})"
            ),
            Self::Finalizers(objects) => {
                f.write_str(match objects.first {
                    None => "objects with a finalizer",
                    Some(_) => "objects wait for their finalizer",
                })?;
                write!(f, ": java.lang.ref.Finalizer holds each until it has run ({objects})")
            }
            Self::CleaningActions(actions) => {
                f.write_str(match actions.first {
                    None => "cleaning actions that have not run",
                    Some(_) => "cleaning actions pile up",
                })?;
                write!(
                    f,
                    ": each stays until its object is unreachable and the cleaner's thread has run it ({actions})"
                )
            }
            Self::StuckThread { thread, frame } => write!(f, "the thread {thread} is in {frame}"),
            Self::TimerTasks(tasks) => match tasks.first {
                None => write!(f, "tasks wait in a timer's queue ({tasks})"),
                Some(_) => write!(f, "tasks pile up in a timer's queue ({tasks})"),
            },
            Self::CancelledTasks {
                cancelled,
                checked,
                is_timer,
            } => write!(
                f,
                "{} of {} tasks looked at are cancelled but stay until their time comes; {}",
                grouped(*cancelled),
                grouped(*checked),
                match is_timer {
                    true => "Timer.purge() removes them",
                    false => "setRemoveOnCancelPolicy(true) removes them at once",
                }
            ),
            Self::ThreadLocal => f.write_str(
                "values of a ThreadLocal: threads that live on, as those of a pool do, keep them until \
                 ThreadLocal.remove()",
            ),
            Self::KeptByThreads {
                names,
                threads,
                at_least,
            } => {
                let shown = names.join(", ");
                let count = grouped(*threads as u64);
                match (at_least, *threads == names.len()) {
                    (false, true) => write!(f, "kept by {shown}"),
                    (false, false) => write!(f, "kept by {count} threads, among them {shown}"),
                    (true, true) => write!(f, "kept by {shown}, and perhaps by more threads"),
                    (true, false) => {
                        write!(f, "kept by at least {count} threads, among them {shown}")
                    }
                }
            }
            Self::VirtualThreads {
                threads,
                with_locals: true,
            } => write!(
                f,
                "virtual threads that wait: a parked one keeps its stack in the heap, with all that its locals refer to \
                 ({threads})"
            ),
            Self::VirtualThreads { threads, .. } => write!(
                f,
                "virtual threads that wait: this dump does not show what the locals of a parked one refer to ({threads})"
            ),
            Self::Listeners { field, listeners } => match listeners.first {
                None => write!(f, "listeners that wait to be called: {field} holds {listeners}"),
                Some(_) => write!(
                    f,
                    "listeners that are added and not removed: {field} holds {listeners}"
                ),
            },
            Self::PoolTasks(tasks) => {
                f.write_str("tasks wait for a thread of the pool")?;
                if tasks.first.is_some() {
                    f.write_str(": more are submitted than are run")?;
                }
                write!(f, " ({tasks})")
            }
            Self::Queue(elements) => match elements.first {
                None => write!(f, "elements of a queue wait to be taken out ({elements})"),
                Some(_) => write!(
                    f,
                    "a queue: more elements enter than are taken out ({elements})"
                ),
            },
            Self::WeakMapValues { referring, checked } => write!(
                f,
                "a WeakHashMap whose values refer to their keys, so no entry ever goes ({} of {} entries looked at)",
                grouped(*referring),
                grouped(*checked)
            ),
            Self::SoftReferences { class } => write!(
                f,
                "held by soft references only ({class}): the JVM clears them before memory runs out"
            ),
            Self::MostlySoftReferences { class } => write!(
                f,
                "most of it is held by soft references only ({class}): the JVM clears them before memory runs out"
            ),
            Self::StaysWhenCleared { class, stays } => write!(
                f,
                "the JVM clears the soft references ({class}) before memory runs out, but they have no queue: {stays} of \
                 the growth stays then"
            ),
            Self::WeakHashMap => f.write_str(
                "a WeakHashMap drops an entry when nothing else holds its key: look at what holds the keys",
            ),
            Self::WeakReferences { class } => write!(
                f,
                "what it holds are weak references ({class}), which keep nothing alive"
            ),
            Self::EmptySlots { empty, slots } => write!(
                f,
                "{} of {} slots are empty: the array was made that large, or needed the size once",
                grouped(*empty),
                grouped(*slots)
            ),
            Self::EldestEntry { class } => write!(
                f,
                "{class} extends LinkedHashMap, as maps do that remove their eldest entry when they are full"
            ),
            Self::LibraryBound {
                class,
                field,
                bound,
                is_weighed,
            } => {
                write!(f, "{class} has a bound: {field} is {}", grouped(*bound))?;
                match is_weighed {
                    true => f.write_str(", a sum of weights"),
                    false => Ok(()),
                }
            }
            Self::StatedBound {
                field,
                bound,
                held,
                is_full,
                is_one,
            } => write!(
                f,
                "{}: {field} is {}, and {} are held{}",
                if *is_full { "it is full" } else { "it may have a bound" },
                grouped(*bound),
                grouped(*held),
                if *is_one { "" } else { " in each on average" }
            ),
            Self::ClassesLoaded { classes } => write!(
                f,
                "{} classes were loaded between the dumps, and the runtime's own tables grow with them",
                grouped(*classes)
            ),
            Self::Samples {
                held,
                kept,
                permille,
            } => {
                write!(
                    f,
                    "of {held} samples held there in the first dump {kept} are still there"
                )?;
                match permille {
                    Some(permille) => write!(
                        f,
                        "; of all that these stacks allocated since, {permille} in 1,000 are alive"
                    ),
                    None => Ok(()),
                }
            }
            Self::Usage {
                span,
                watched,
                collections,
                put,
                removed,
                read,
            } => {
                write!(f, "in the {span} up to the last dump")?;
                if (*watched, *collections) != (1, 1) {
                    let (watched, all) = (grouped(*watched), grouped(*collections));
                    write!(f, " of {watched} of {all} collections")?;
                }
                match put {
                    0 => f.write_str(": no element was put there"),
                    1 => f.write_str(": 1 element was put there"),
                    _ => write!(f, ": {} elements were put there", grouped(*put)),
                }?;
                match removed {
                    0 => f.write_str(", none was removed"),
                    1 => f.write_str(", 1 was removed"),
                    _ => write!(f, ", {} were removed", grouped(*removed)),
                }?;
                match read {
                    0 => f.write_str(", nothing was read"),
                    1 => f.write_str(", it was read once"),
                    _ => write!(f, ", it was read {} times", grouped(*read)),
                }
            }
        }
    }
}

/// True if the number of holders counts as unchanged.
const fn is_level(before: u64, now: u64) -> bool {
    const LEVEL_PART: u64 = 20;
    before.abs_diff(now) <= before / LEVEL_PART
}

fn thread_stacks(
    threads: u64,
    names: &[String],
    states: &[(&str, usize)],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    /// The default stack size of a thread on 64-bit systems.
    const STACK: u64 = 1 << 20;
    write!(f, "{} threads", grouped(threads))?;
    if !names.is_empty() {
        let more = match (names.len() as u64) < threads {
            true => ", …",
            false => "",
        };
        write!(f, " ({}{more})", names.join(", "))?;
    }
    for (name, count) in states {
        write!(f, ", {count} {name}")?;
    }
    let stacks = Size(threads.saturating_mul(STACK));
    write!(
        f,
        ": with the default of 1 MiB each, their stacks reserve {stacks} outside of the heap"
    )
}
