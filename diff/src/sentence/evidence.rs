//! Evidence for or against a suspect: how it is held, known leak patterns, bounds, samples, and collection usage.

use std::fmt;

use heapdiff_units::{Size, Span, counted, grouped};

use super::{Change, Names};

/// One piece of evidence about a suspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The objects grew more in size than in number. `before` and `now` are the numbers of objects.
    GrewInPlace { before: u64, now: u64 },
    /// One holder holds more objects than before.
    MoreObjects,
    /// There are more objects, and the number of their holders may also have changed. `before` and `now` are the
    /// numbers of holders.
    MoreHeld { before: u64, now: u64 },
    /// One of several holders holds most of the suspect's content.
    MostlyOne { holders: u64, class: String },
    /// The suspect's content is spread over several holders. `mean` is the mean number of bytes per holder. `before` is
    /// this mean in the first dump; `None` if there is only one dump.
    Spread {
        holders: u64,
        class: String,
        mean: u64,
        before: Option<u64>,
    },
    /// Several paths lead to each object, and the report names none of the fields on these paths.
    SeveralPaths,
    /// Several fields lead to the same objects. If only some of the fields lead to objects that grew, `grew` names
    /// these.
    Shared { fields: Names, grew: Names },
    /// The largest object is also reachable through another field.
    AlsoReachable { holder: String, other: String },
    /// A collection that holds the same objects grew.
    CollectionGrew { field: String, growth: Size },
    /// The collection in `field` holds the same objects as the suspect. `size` is the collection's own size.
    CollectionHolds { field: String, size: Size },
    /// No single holder has these objects in this dump. So the dump's figures are computed: the totals of the objects'
    /// class, without the objects that other holders hold.
    FiguresOfClass { dump: usize },
    /// The figures of the dump are interpolated from the dumps before and after it.
    FiguresInterpolated { dump: usize },
    /// The last dump is a summary that stores no evidence about this suspect. So it is unknown whether the suspect's
    /// size has a limit.
    NotInSummary,
    /// One object is itself so large that its shallow size is most of the retained size.
    OneLargeObject { class: String, size: Size },
    /// One object dominates many small ones.
    OneObject { class: String },
    /// Several objects without large groups of objects below them. Their retained bytes are in the objects themselves
    /// and in small groups.
    SmallParts {
        objects: u64,
        class: String,
        mean: Size,
    },
    /// Several objects. None of them holds all other objects.
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
    /// One object holds all other objects of its class.
    Tree {
        objects: u64,
        class: String,
        mean: Size,
    },
    /// In each object, one field holds most of the suspect's content.
    HeldInEach {
        field: String,
        objects: u64,
        class: String,
    },

    /// Each of the accumulating classes also takes metaspace.
    Metaspace,
    /// Stacks of platform threads. `states` are the numbers of threads in each state. Empty if the states of some
    /// threads are unknown.
    ThreadStacks {
        threads: u64,
        names: Vec<String>,
        states: Vec<(&'static str, usize)>,
    },
    /// Direct buffers and their memory. `before` is the size of this memory in the first dump; `None` if there is only
    /// one dump.
    DirectBuffers {
        size: Size,
        before: Option<Size>,
        buffers: Change,
    },

    /// Known leak pattern: views that cover a small part of large arrays.
    ArraySlices {
        small: u64,
        checked: u64,
        class: String,
        used: Size,
        pinned: Size,
    },
    /// Views that cover a small part of large lists.
    ListSlices {
        small: u64,
        checked: u64,
        class: String,
        used: u64,
        pinned: u64,
    },
    /// Keys of a hash table that seem to lack the method `equals`: different keys have the same fields.
    HashKeys {
        checked: u64,
        alike: u64,
        class: String,
    },
    /// Several loaders define the same class.
    ClassLoaders { class: String, loaders: Change },
    /// There are more class loaders of one class than before.
    MoreClassLoaders(Change),
    /// The field that holds the class loaders.
    LoadersPinned { field: String },
    /// Paths of `File.deleteOnExit`.
    DeleteOnExit(Change),
    /// Objects with a finalizer.
    Finalizers(Change),
    /// Actions of cleaners.
    CleaningActions(Change),
    /// Application code runs in the thread that runs finalizers or cleaners, and keeps it busy.
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
    /// The threads that hold values of thread locals. `at_least` is true if not all threads were checked, so that there
    /// may be more.
    KeptByThreads {
        names: Vec<String>,
        threads: usize,
        at_least: bool,
    },
    /// Parked virtual threads. `with_locals` is true if the dump contains the frames of parked virtual threads.
    VirtualThreads { threads: Change, with_locals: bool },
    /// Listeners in a field.
    Listeners { field: String, listeners: Change },
    /// Tasks in the queue of a thread pool.
    PoolTasks(Change),
    /// Elements of a queue that is not the queue of a thread pool.
    Queue(Change),
    /// Values of a weak map that refer to their keys.
    WeakMapValues { referring: u64, checked: u64 },

    /// Soft references hold all of the suspect's content.
    SoftReferences { class: String },
    /// Soft references hold most of the suspect's content.
    MostlySoftReferences { class: String },
    /// If the JVM clears the soft references, the entries that contained them stay.
    StaysWhenCleared { class: String, stays: Size },
    /// The content of a `WeakHashMap`.
    WeakHashMap,
    /// The suspect's content consists of weak references.
    WeakReferences { class: String },
    /// A mostly empty array.
    EmptySlots { empty: u64, slots: u64 },
    /// A subclass of `LinkedHashMap`.
    EldestEntry { class: String },
    /// A collection of a known library has a bound.
    LibraryBound {
        class: String,
        field: String,
        bound: u64,
        is_weighed: bool,
    },
    /// A field contains a bound: a number that may limit the size of the collection. `is_full` is true if the bound is
    /// reached. `held` is the number of objects that each holder has on average.
    StatedBound {
        field: String,
        bound: u64,
        held: u64,
        is_full: bool,
        is_one: bool,
    },

    /// The JDK's own tables grow while classes are loaded.
    ClassesLoaded { classes: u64 },
    /// The first dump had `held` samples of the suspect's objects. The last dump still has `kept` of these. `permille`
    /// is the part of all samples of the allocating stacks that is alive, in thousandths. If not almost all of these
    /// samples are alive, `permille` is `None`.
    Samples {
        held: u64,
        kept: u64,
        permille: Option<u64>,
    },
    /// How the program used the collections. The agent watched `watched` of the `collections` collections.
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
                f.write_str("the total size of the objects grew, and their number did not change")
            }
            Self::GrewInPlace { before: 0, .. } => f.write_str("the first dump has no such objects"),
            Self::GrewInPlace { before, now } => write!(
                f,
                "the total size of the objects grew, and their number changed from {} to {}",
                grouped(*before),
                grouped(*now)
            ),
            Self::MoreObjects => f.write_str("more objects are reachable than before"),
            Self::MoreHeld { before: 0, .. } => {
                f.write_str("the number of objects grew, and their holders are new")
            }
            Self::MoreHeld { before, now } if is_level(*before, *now) => {
                f.write_str("the number of objects grew, and the number of holders did not change")
            }
            Self::MoreHeld { before, now } => write!(
                f,
                "the number of objects grew, and the number of holders changed from {} to {}",
                grouped(*before),
                grouped(*now)
            ),
            Self::MostlyOne { holders, class } => write!(
                f,
                "one of {} objects of class {class} holds most of the bytes",
                grouped(*holders)
            ),
            Self::Spread {
                holders,
                class,
                mean,
                before: Some(before),
            } => write!(
                f,
                "it is spread over {holders} objects of class {class}, which retain {mean} bytes each on average ({before} in the first dump)",
                holders = grouped(*holders),
                mean = grouped(*mean),
                before = grouped(*before)
            ),
            Self::Spread {
                holders,
                class,
                mean,
                before: None,
            } => write!(
                f,
                "{} holders of class {class} retain {} each on average",
                grouped(*holders),
                Size(*mean)
            ),
            Self::SeveralPaths => f.write_str(
                "several paths lead to each object, so clearing one field frees nothing",
            ),
            Self::Shared { fields, grew } if grew.0.is_empty() => write!(
                f,
                "the objects are reachable through {fields}: clearing only one of them frees nothing"
            ),
            Self::Shared { fields, grew } => write!(
                f,
                "the objects are reachable through {fields}, but only {grew} grew: clear all these fields to free the objects"
            ),
            Self::AlsoReachable { holder, other } => write!(
                f,
                "clearing {holder} alone does not free the objects: they are also reachable through {other}"
            ),
            Self::CollectionGrew { field, growth } => write!(
                f,
                "the collection in {field} holds the same objects and grew by {growth}"
            ),
            Self::CollectionHolds { field, size } => write!(
                f,
                "the collection in {field} holds the same objects, and its own size is {size}"
            ),
            Self::FiguresOfClass { dump } => write!(
                f,
                "in dump {dump} these objects have no single holder; the figures for this dump are the totals of the class without the objects that other holders hold"
            ),
            Self::NotInSummary => f.write_str(
                "the summary of the last dump contains no facts about such a small holder, so heapdiff does not know whether its size is limited",
            ),
            Self::FiguresInterpolated { dump } => write!(
                f,
                "in dump {dump} other paths held these objects, so the figures for this dump are interpolated from the dumps before and after it"
            ),
            Self::OneLargeObject { class, size } => write!(
                f,
                "one object of class {class} takes most of the bytes: its own size is {size}"
            ),
            Self::OneObject { class } => {
                write!(f, "one object of class {class} dominates many small objects")
            }
            Self::SmallParts {
                objects,
                class,
                mean,
            } => write!(
                f,
                "{} objects of class {class} retain {mean} each on average, in small parts",
                grouped(*objects)
            ),
            Self::Objects {
                objects,
                class,
                mean,
                largest,
            } => write!(
                f,
                "it consists of {} objects of class {class}, which retain {mean} each on average and {largest} at most",
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
                "one of {} objects of class {class} holds all others, {mean} each on average",
                grouped(*objects)
            ),
            Self::HeldInEach {
                field,
                objects,
                class,
            } => write!(
                f,
                "the field {field} of each object holds most of the bytes: {} objects of class {class} in total",
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
            } => match before {
                Some(before) => write!(
                    f,
                    "direct byte buffers own {size} outside of the heap, up from {before} ({buffers})"
                ),
                None => write!(
                    f,
                    "direct byte buffers take {size} outside of the heap ({buffers})"
                ),
            },
            Self::ArraySlices {
                small,
                checked,
                class,
                used,
                pinned,
            } => write!(
                f,
                "slices keep large arrays alive: {} of {} checked objects of class {class} use {used} of {pinned}",
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
                "slices keep large lists alive: {} of {} checked objects of class {class} use {} of {} elements",
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
                "hash keys without equals: {} of {} checked keys of class {class} have the same fields as another key",
                grouped(*alike),
                grouped(*checked)
            ),
            Self::ClassLoaders { class, loaders } => match loaders.first {
                None => write!(
                    f,
                    "class loaders of former deployments may still be in memory: {class} is defined by {loaders}"
                ),
                Some(_) => write!(
                    f,
                    "class loader leak: {class} is defined by {loaders}"
                ),
            },
            Self::MoreClassLoaders(loaders) => {
                write!(f, "the number of class loaders grew: {loaders}")
            }
            Self::LoadersPinned { field } => write!(f, "the class loaders are held by {field}"),
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
                write!(
                    f,
                    ": java.lang.ref.Finalizer holds each object until its finalizer has run ({objects})"
                )
            }
            Self::CleaningActions(actions) => {
                f.write_str(match actions.first {
                    None => "cleaning actions have not run",
                    Some(_) => "cleaning actions pile up",
                })?;
                write!(
                    f,
                    ": each action stays until its object is unreachable and the cleaner thread has run the action ({actions})"
                )
            }
            Self::StuckThread { thread, frame } => {
                write!(f, "the thread {thread} runs application code: {frame}")
            }
            Self::TimerTasks(tasks) => match tasks.first {
                None => write!(f, "tasks wait in the queue of a timer ({tasks})"),
                Some(_) => write!(f, "tasks pile up in the queue of a timer ({tasks})"),
            },
            Self::CancelledTasks {
                cancelled,
                checked,
                is_timer,
            } => write!(
                f,
                "{} of {} checked tasks are cancelled but stay until their time comes: {}",
                grouped(*cancelled),
                grouped(*checked),
                if *is_timer {
                    "Timer.purge() removes cancelled tasks"
                } else {
                    "setRemoveOnCancelPolicy(true) removes them at once"
                }
            ),
            Self::ThreadLocal => f.write_str(
                "ThreadLocal values on long-lived (pooled) threads: they stay until ThreadLocal.remove() is called",
            ),
            Self::KeptByThreads {
                names,
                threads,
                at_least,
            } => {
                let shown = names.join(", ");
                let count = grouped(*threads as u64);
                if *at_least {
                    write!(f, "at least {count} threads hold them, among them {shown}")
                } else if *threads == names.len() {
                    write!(f, "the threads that hold them: {shown}")
                } else {
                    write!(f, "{count} threads in total hold them, among them {shown}")
                }
            }
            Self::VirtualThreads {
                threads,
                with_locals: true,
            } => write!(
                f,
                "parked virtual threads keep their stacks in the heap, with all objects that their local variables refer \
                 to ({threads})"
            ),
            Self::VirtualThreads { threads, .. } => write!(
                f,
                "virtual threads are parked, but this dump does not show the objects that their local variables refer to \
                 ({threads})"
            ),
            Self::Listeners { field, listeners } => match listeners.first {
                None => write!(f, "listeners wait to be called: {field} holds {listeners}"),
                Some(_) => write!(
                    f,
                    "listeners are added and not removed: {field} holds {listeners}"
                ),
            },
            Self::PoolTasks(tasks) => match tasks.first {
                None => write!(f, "tasks wait for a thread of the pool ({tasks})"),
                Some(_) => write!(
                    f,
                    "more tasks are submitted to the thread pool than it runs ({tasks})"
                ),
            },
            Self::Queue(elements) => match elements.first {
                None => write!(f, "elements of a queue wait to be taken out ({elements})"),
                Some(_) => write!(
                    f,
                    "more elements enter the queue than are taken out ({elements})"
                ),
            },
            Self::WeakMapValues { referring, checked } => write!(
                f,
                "the values of a WeakHashMap refer to their keys, so no entry is ever removed ({} of {} checked entries)",
                grouped(*referring),
                grouped(*checked)
            ),
            Self::SoftReferences { class } => write!(
                f,
                "only soft references ({class}) hold the content: the JVM clears them before memory runs out"
            ),
            Self::MostlySoftReferences { class } => write!(
                f,
                "soft references ({class}) hold most of the content: the JVM clears them before memory runs out"
            ),
            Self::StaysWhenCleared { class, stays } => write!(
                f,
                "{stays} of the growth stays when the JVM clears the soft references ({class}), because these have no reference queue"
            ),
            Self::WeakHashMap => f.write_str(
                "a WeakHashMap removes an entry when nothing else holds its key: look for the holders of the keys",
            ),
            Self::WeakReferences { class } => write!(
                f,
                "the content consists of weak references ({class}), which keep nothing alive"
            ),
            Self::EmptySlots { empty, slots } => write!(
                f,
                "{} of {} slots are empty: the array was created with this size, or needed it earlier",
                grouped(*empty),
                grouped(*slots)
            ),
            Self::EldestEntry { class } => write!(
                f,
                "{class} extends LinkedHashMap: it may be a cache that removes its eldest entry when it is full"
            ),
            Self::LibraryBound {
                class,
                field,
                bound,
                is_weighed: true,
            } => write!(
                f,
                "{class} limits the sum of weights: {field} is {}",
                grouped(*bound)
            ),
            Self::LibraryBound {
                class,
                field,
                bound,
                ..
            } => write!(
                f,
                "{class} limits the number of elements: {field} is {}",
                grouped(*bound)
            ),
            Self::StatedBound {
                field,
                bound,
                held,
                is_full,
                is_one,
            } => {
                f.write_str(if *is_full {
                    "the limit is reached"
                } else {
                    "there may be a limit"
                })?;
                let (bound, held) = (grouped(*bound), grouped(*held));
                write!(f, ": {field} is {bound}, and ")?;
                if *is_one {
                    write!(f, "{held} objects are held")
                } else {
                    write!(f, "each holder has {held} objects on average")
                }
            }
            Self::ClassesLoaded { classes } => write!(
                f,
                "{} classes were loaded between the dumps, and tables of the JDK grow with them",
                grouped(*classes)
            ),
            Self::Samples {
                held,
                kept,
                permille: None,
            } => write!(
                f,
                "{} of {} samples of the first dump are still held there",
                grouped(*kept),
                grouped(*held)
            ),
            Self::Samples {
                held,
                kept,
                permille: Some(permille),
            } => write!(
                f,
                "{} of {} samples of the first dump are still held, and {}.{} % of all sampled objects \
                 of the allocating stacks are alive",
                grouped(*kept),
                grouped(*held),
                permille / 10,
                permille % 10
            ),
            Self::Usage {
                span,
                watched,
                collections,
                put,
                removed,
                read,
            } => {
                write!(
                    f,
                    "during the last {span} before the dump, the agent counted {puts}, {removals} and {reads}",
                    puts = counted(*put, "put"),
                    removals = counted(*removed, "removal"),
                    reads = counted(*read, "read")
                )?;
                match (watched, collections) {
                    (1, 1) => Ok(()),
                    (watched, all) => write!(
                        f,
                        " (in {} of {} collections)",
                        grouped(*watched),
                        grouped(*all)
                    ),
                }
            }
        }
    }
}

/// True if the number of holders is regarded as unchanged.
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
    /// The stack size that a thread has by default on 64-bit systems.
    const STACK: u64 = 1 << 20;
    write!(f, "{} threads", grouped(threads))?;
    if !names.is_empty() {
        let more = if (names.len() as u64) < threads {
            ", …"
        } else {
            ""
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
