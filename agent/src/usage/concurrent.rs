//! Concurrent collections whose use is counted, other than `ConcurrentHashMap`. The module `collections` describes
//! `ConcurrentHashMap` and all other collections.

use heapdiff_sites::usage::Kind;

use super::collections::inner_class;
use super::points::{
    Collection, Gate, Many, Returned, Size, Steps, Watched, cleared, point, put, read, removed,
    watched_class,
};

const LINKED_BLOCKING: &str = "java/util/concurrent/LinkedBlockingQueue";
pub(super) const LINKED_BLOCKING_QUEUE: Watched = Watched {
    // There is no quick test whether a `LinkedBlockingQueue` is large (see [`Gate`]): such a test needs a number that
    // never decreases, and these queues have no such number. Usually a program has only few of these queues, so the
    // missing test costs little.
    gate: Gate::Open,
    size: Size::Atomic("count"),
    points: &[
        put(&["enqueue"]),
        removed(&["dequeue", "unlink"]),
        point(
            Kind::Removed,
            Many::AtMost(2),
            &["drainTo(Ljava/util/Collection;I"],
        ),
        cleared(&["clear"]),
        read(&[
            "peek",
            "contains",
            "iterator",
            "spliterator",
            "forEach",
            "toArray",
            "writeObject",
        ]),
    ],
    ..watched_class(LINKED_BLOCKING)
};

const COPIED: &str = "java/util/concurrent/CopyOnWriteArrayList";
pub(super) const COPIED_LIST: Watched = Watched {
    gate: Gate::Array("array", "[Ljava/lang/Object;"),
    size: Size::Length("array"),
    points: &[
        point(Kind::Put, Many::Longer(1, "array"), &["setArray"]),
        read(&[
            "get(I",
            "getFirst",
            "getLast",
            "indexOf",
            "lastIndexOf",
            "containsAll",
            "iterator",
            "listIterator",
            "spliterator",
            "forEach",
            "toArray",
            "equals",
            "hashCode",
            "toString",
            "clone",
            "writeObject",
        ]),
    ],
    ..watched_class(COPIED)
};

const BLOCKING_DEQUE: &str = "java/util/concurrent/LinkedBlockingDeque";
/// Every method that changes the size of a `LinkedBlockingDeque` holds the lock. So hooks are called at the
/// instructions that set the size.
pub(super) const LINKED_BLOCKING_DEQUE: Watched = Watched {
    gate: Gate::Open,
    size: Size::Field("count"),
    points: &[read(&[
        "peekFirst",
        "peekLast",
        "contains",
        "iterator",
        "descendingIterator",
        "spliterator",
        "forEach",
        "toArray",
        "writeObject",
    ])],
    steps: &[Steps::Size("count")],
    ..watched_class(BLOCKING_DEQUE)
};

const ARRAY_BLOCKING: &str = "java/util/concurrent/ArrayBlockingQueue";
/// Every method that changes the size of an `ArrayBlockingQueue` holds the lock. So hooks are called at the
/// instructions that set the size. `spliterator` gets no hook, because it calls `iterator`, which has one.
pub(super) const ARRAY_BLOCKING_QUEUE: Watched = Watched {
    gate: Gate::Length("items"),
    size: Size::Field("count"),
    points: &[read(&[
        "peek",
        "contains",
        "iterator",
        "forEach",
        "toArray",
        "writeObject",
    ])],
    steps: &[Steps::Size("count")],
    ..watched_class(ARRAY_BLOCKING)
};

const QUEUE: &str = "java/util/concurrent/ConcurrentLinkedQueue";
const QUEUE_NODE: &str = "java/util/concurrent/ConcurrentLinkedQueue$Node";
/// Each element of a `ConcurrentLinkedQueue` has its own node. The thread whose call of `casItem` succeeds removes the
/// element.
pub(super) const LINKED_QUEUE: Watched = Watched {
    gate: Gate::Grown,
    size: Size::Unknown,
    points: &[read(&[
        "peek",
        "contains",
        "iterator",
        "spliterator",
        "forEach",
        "toArrayInternal",
        "toString",
        "writeObject",
    ])],
    steps: &[
        Steps::After {
            within: &["offer", "addAll"],
            class: QUEUE_NODE,
            name: "<init>",
            kind: Kind::Put,
            many: Returned::One,
        },
        Steps::After {
            within: &[],
            class: QUEUE_NODE,
            name: "casItem",
            kind: Kind::Removed,
            many: Returned::IfTrue,
        },
    ],
    ..watched_class(QUEUE)
};
/// The iterator's `remove` clears the node's element without `casItem`, so `remove` itself gets a hook.
pub(super) const LINKED_QUEUE_ITERATOR: Watched = inner_class(
    LINKED_QUEUE,
    "java/util/concurrent/ConcurrentLinkedQueue$Itr",
    Collection::Field(
        "java/util/concurrent/ConcurrentLinkedQueue$Itr",
        "this$0",
        "Ljava/util/concurrent/ConcurrentLinkedQueue;",
    ),
    &[removed(&["remove"])],
);

const DEQUE: &str = "java/util/concurrent/ConcurrentLinkedDeque";
/// When several threads try to take an element of a `ConcurrentLinkedDeque`, exactly one of them unlinks the element's
/// node. So calls of `unlink` are counted as removals. `isEmpty` gets no hook, because it calls `peekFirst`.
pub(super) const LINKED_DEQUE: Watched = Watched {
    gate: Gate::Grown,
    size: Size::Unknown,
    points: &[
        removed(&["unlink"]),
        read(&[
            "peekFirst",
            "peekLast",
            "contains",
            "iterator",
            "descendingIterator",
            "spliterator",
            "forEach",
            "toArrayInternal",
            "toString",
            "writeObject",
        ]),
    ],
    steps: &[Steps::After {
        within: &["linkFirst", "linkLast", "addAll"],
        class: DEQUE,
        name: "newNode",
        kind: Kind::Put,
        many: Returned::One,
    }],
    ..watched_class(DEQUE)
};

const SKIP_LIST: &str = "java/util/concurrent/ConcurrentSkipListMap";
const SUB: &str = "java/util/concurrent/ConcurrentSkipListMap$SubMap";
const SKIP_LIST_TYPE: &str = "Ljava/util/concurrent/ConcurrentSkipListMap;";
/// A `ConcurrentSkipListMap` calls `addCount` for each put and each removal. Its internal search methods start again if
/// another thread interferes. So these methods get no hook for reads, but the methods that call them do.
pub(super) const SKIP_LIST_MAP: Watched = Watched {
    gate: Gate::Grown,
    size: Size::Unknown,
    points: &[
        point(Kind::Put, Many::Difference(1), &["addCount"]),
        read(&[
            "doGet",
            "containsValue",
            "computeIfPresent",
            "compute",
            "merge",
            "replace",
            "replaceAll",
            "removeEntryIf",
            "removeValueIf",
            "forEach",
            "equals",
            "firstKey",
            "lastKey",
            "firstEntry",
            "lastEntry",
            "lowerKey",
            "lowerEntry",
            "floorKey",
            "floorEntry",
            "ceilingKey",
            "ceilingEntry",
            "higherKey",
            "higherEntry",
            "keySpliterator",
            "valueSpliterator",
            "entrySpliterator",
            "writeObject",
        ]),
    ],
    ..watched_class(SKIP_LIST)
};
pub(super) const SKIP_LIST_ITERATOR: Watched = inner_class(
    SKIP_LIST_MAP,
    "java/util/concurrent/ConcurrentSkipListMap$Iter",
    Collection::Argument(1),
    &[read(&["<init>"])],
);
/// Puts, removals and lookups in a submap call methods of the map, which are counted there.
pub(super) const SUB_MAP: Watched = inner_class(
    SKIP_LIST_MAP,
    SUB,
    Collection::Field(SUB, "m", SKIP_LIST_TYPE),
    &[read(&[
        "containsValue",
        "firstKey",
        "lastKey",
        "firstEntry",
        "lastEntry",
        "getNearKey",
        "getNearEntry",
    ])],
);
pub(super) const SUB_MAP_ITERATOR: Watched = inner_class(
    SKIP_LIST_MAP,
    "java/util/concurrent/ConcurrentSkipListMap$SubMap$SubMapIter",
    Collection::ArgumentField(1, SUB, "m", SKIP_LIST_TYPE),
    &[read(&["<init>"])],
);
