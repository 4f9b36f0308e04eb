//! The JDK collections whose use is counted.
//!
//! If one method of a class calls another one, only one of the two gets a hook, so that each use is counted once. The
//! calls between the methods were found in the sources of JDK 17 and 25. Tests check each method with each JDK.

use heapdiff_sites::usage::Kind;

use super::concurrent;
use super::points::{
    Collection, Gate, Many, Point, Size, Steps, Watched, cleared, point, put, read, removed,
    watched_class,
};

const MAP: &str = "java/util/HashMap";
const MAP_GATE: Gate = Gate::Changes("modCount");
const MAP_SIZE: Size = Size::After("size");
const LINKED_MAP: &str = "java/util/LinkedHashMap";

/// Returns the description of `HashMap` or of a class that is implemented in the same way.
const fn map_class(class: &'static str, points: &'static [Point]) -> Watched {
    Watched {
        of: MAP,
        gate: MAP_GATE,
        size: MAP_SIZE,
        points,
        ..watched_class(class)
    }
}

pub(super) const fn inner_class(
    outer: Watched,
    class: &'static str,
    collection: Collection,
    points: &'static [Point],
) -> Watched {
    Watched {
        class,
        collection,
        points,
        steps: &[],
        ..outer
    }
}

const HASH_MAP: Watched = map_class(
    MAP,
    &[
        put(&["afterNodeInsertion"]),
        removed(&["afterNodeRemoval"]),
        cleared(&["clear"]),
        read(&[
            "getNode",
            "computeIfAbsent",
            "compute",
            "merge",
            "containsValue",
            "forEach",
            "replaceAll",
            "keysToArray",
            "valuesToArray",
        ]),
    ],
);
const LINKED_HASH_MAP: Watched = map_class(
    LINKED_MAP,
    &[
        put(&["afterNodeInsertion"]),
        removed(&["afterNodeRemoval"]),
        read(&[
            "containsValue",
            "forEach",
            "replaceAll",
            "keysToArray([Ljava/lang/Object;)|keysToArray([Ljava/lang/Object;Z)",
            "valuesToArray([Ljava/lang/Object;)|valuesToArray([Ljava/lang/Object;Z)",
        ]),
    ],
);
const MAP_OUTSIDE: &str = "Ljava/util/HashMap;";
const LINKED_OUTSIDE: &str = "Ljava/util/LinkedHashMap;";

/// Describes a view of a map. The view is an inner class of the map.
const fn view(class: &'static str, outside: &'static str, points: &'static [Point]) -> Watched {
    Watched {
        class,
        of: MAP,
        collection: Collection::Field(class, "this$0", outside),
        gate: MAP_GATE,
        size: MAP_SIZE,
        points,
        steps: &[],
    }
}

const CONCURRENT: &str = "java/util/concurrent/ConcurrentHashMap";
const NODES: &str = "[Ljava/util/concurrent/ConcurrentHashMap$Node;";
const CONCURRENT_MAP: Watched = Watched {
    gate: Gate::Array("table", NODES),
    size: Size::Asked,
    points: &[
        // `ConcurrentHashMap` calls `addCount` for each put and each removal.
        point(Kind::Put, Many::Difference(1), &["addCount"]),
        read(&[
            "get",
            "containsValue",
            "computeIfAbsent",
            "computeIfPresent",
            "compute",
            "merge",
            "replaceAll",
            "removeEntryIf",
            "removeValueIf",
            "hashCode",
            "equals",
            "toString",
            "forEach",
            "forEachKey",
            "forEachValue",
            "forEachEntry",
            "search",
            "searchKeys",
            "searchValues",
            "searchEntries",
            "reduce",
            "reduceToDouble",
            "reduceToLong",
            "reduceToInt",
            "reduceKeys",
            "reduceKeysToDouble",
            "reduceKeysToLong",
            "reduceKeysToInt",
            "reduceValues",
            "reduceValuesToDouble",
            "reduceValuesToLong",
            "reduceValuesToInt",
            "reduceEntries",
            "reduceEntriesToDouble",
            "reduceEntriesToLong",
            "reduceEntriesToInt",
        ]),
    ],
    ..watched_class(CONCURRENT)
};
const CONCURRENT_VIEW: Collection = Collection::Field(
    "java/util/concurrent/ConcurrentHashMap$CollectionView",
    "map",
    "Ljava/util/concurrent/ConcurrentHashMap;",
);

const TREE: &str = "java/util/TreeMap";
const TREE_MAP: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[
        put(&["addEntry", "addEntryToEmptyMap"]),
        // Before JDK 15, there is no single method that all puts call. So the number of elements put follows from the
        // change of the collection's size.
        point(Kind::Put, Many::Some, &["put|addEntry"]),
        removed(&["deleteEntry"]),
        cleared(&["clear"]),
        // Every iteration over the map or one of its views begins with a search for the first entry. So the methods
        // that search the first entry count as reads of the map.
        read(&[
            "get",
            "containsKey",
            "computeIfAbsent",
            "computeIfPresent",
            "compute",
            "merge",
            "getFirstEntry",
            "getLastEntry",
            "getCeilingEntry",
            "getHigherEntry",
            "getFloorEntry",
            "getLowerEntry",
        ]),
    ],
    ..watched_class(TREE)
};

const LIST: &str = "java/util/ArrayList";
const ARRAY_LIST: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[
        put(&["add(Ljava/lang/Object;[", "add(ILjava"]),
        point(Kind::Put, Many::Some, &["addAll"]),
        removed(&["fastRemove"]),
        point(Kind::Removed, Many::Range(2, 3), &["shiftTailOverGap"]),
        cleared(&["clear"]),
        read(&[
            "get",
            "getFirst",
            "getLast",
            "indexOf",
            "lastIndexOf",
            "iterator",
            "listIterator",
            "spliterator",
            "forEach",
            "toArray",
            "equals",
            "hashCode",
            "clone",
            "writeObject",
        ]),
    ],
    ..watched_class(LIST)
};

const LINKED_LIST: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[
        put(&["linkFirst", "linkLast", "linkBefore"]),
        point(Kind::Put, Many::Some, &["addAll(I"]),
        removed(&["unlinkFirst", "unlinkLast", "unlink"]),
        cleared(&["clear"]),
        read(&[
            "get",
            "getFirst",
            "getLast",
            "peek",
            "peekFirst",
            "peekLast",
            "indexOf",
            "lastIndexOf",
            "listIterator",
            "descendingIterator",
            "spliterator",
            "toArray",
            "clone",
            "writeObject",
        ]),
    ],
    ..watched_class("java/util/LinkedList")
};

const ARRAY_DEQUE: Watched = Watched {
    gate: Gate::Length("elements"),
    size: Size::Asked,
    points: &[
        put(&["addFirst", "addLast"]),
        point(Kind::Removed, Many::IfAny, &["pollFirst", "pollLast"]),
        removed(&["delete"]),
        cleared(&["clear"]),
        read(&[
            "getFirst",
            "getLast",
            "peekFirst",
            "peekLast",
            "contains",
            "iterator",
            "descendingIterator",
            "spliterator",
            "forEach",
            "toArray()",
            "toArray([",
            "clone",
            "writeObject",
        ]),
    ],
    ..watched_class("java/util/ArrayDeque")
};

const PRIORITY_QUEUE: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[
        put(&["offer"]),
        point(Kind::Removed, Many::IfAny, &["poll"]),
        removed(&["removeAt"]),
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
    ..watched_class("java/util/PriorityQueue")
};

const PRIORITY_BLOCKING: &str = "java/util/concurrent/PriorityBlockingQueue";
const PRIORITY_BLOCKING_QUEUE: Watched = Watched {
    gate: Gate::Length("queue"),
    size: Size::Field("size"),
    points: &[
        put(&["offer(Ljava/lang/Object;)"]),
        point(Kind::Removed, Many::IfAny, &["dequeue"]),
        removed(&["removeAt"]),
        cleared(&["clear"]),
        // Other methods, iterators and spliterators call `toArray`, so they get no hook of their own.
        read(&["peek", "contains", "forEach", "toArray"]),
    ],
    ..watched_class(PRIORITY_BLOCKING)
};

const VECTOR: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("elementCount"),
    points: &[
        put(&["add(Ljava/lang/Object;[", "insertElementAt"]),
        point(Kind::Put, Many::Some, &["addAll"]),
        removed(&["remove(I", "removeElementAt"]),
        point(Kind::Removed, Many::Range(2, 3), &["shiftTailOverGap"]),
        cleared(&["removeAllElements"]),
        read(&[
            "get",
            "elementAt(I",
            "firstElement",
            "lastElement",
            "indexOf(Ljava/lang/Object;I",
            "lastIndexOf(Ljava/lang/Object;I",
            "elements",
            "iterator",
            "listIterator",
            "spliterator",
            "forEach",
            "toArray",
            "copyInto",
            "clone",
            "writeObject",
        ]),
    ],
    ..watched_class("java/util/Vector")
};

const TABLE: &str = "java/util/Hashtable";
/// Each method of `Hashtable` that puts or removes elements sets the field `count` (the number of elements) itself. So
/// hooks are called at the instructions that set this field. All methods are synchronized.
const HASHTABLE: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("count"),
    points: &[read(&[
        "get",
        "contains",
        "containsKey",
        "computeIfAbsent",
        "computeIfPresent",
        "compute",
        "merge",
        "replace",
        "replaceAll",
        "forEach",
        "hashCode",
        "getEnumeration",
        "getIterator",
        "clone",
        "writeHashtable",
    ])],
    steps: &[Steps::Size("count")],
    ..watched_class(TABLE)
};

const WEAK: &str = "java/util/WeakHashMap";
const WEAK_OUTSIDE: &str = "Ljava/util/WeakHashMap;";
/// Counts entries of a `WeakHashMap` as removed when the map expunges them after a GC.
const WEAK_MAP: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[read(&[
        "get",
        "containsKey",
        "containsValue",
        "forEach",
        "replaceAll",
    ])],
    steps: &[Steps::Size("size")],
    ..watched_class(WEAK)
};

const IDENTITY: &str = "java/util/IdentityHashMap";
const IDENTITY_OUTSIDE: &str = "Ljava/util/IdentityHashMap;";
const IDENTITY_MAP: Watched = Watched {
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[read(&[
        "get",
        "containsKey",
        "containsValue",
        "containsMapping",
        "replace",
        "replaceAll",
        "forEach",
        "hashCode",
        "clone",
        "writeObject",
    ])],
    steps: &[Steps::Size("size")],
    ..watched_class(IDENTITY)
};
/// `toArray()` gets no hook, because it calls `toArray(T[])`.
const IDENTITY_PASSES: &[Point] = &[read(&["toArray([", "spliterator"])];

/// Describes a view of a map. The view is an inner class of the map.
const fn view_of(
    map: Watched,
    class: &'static str,
    outside: &'static str,
    points: &'static [Point],
) -> Watched {
    let outer = Collection::Field(class, "this$0", outside);
    inner_class(map, class, outer, points)
}

/// Returns `part` with `steps`. `part` describes a class that belongs to a map, such as a view. `steps` describes the
/// instructions at which methods of this class put or remove elements. It is needed for classes whose methods change
/// the map's size without calling methods of the map.
const fn with_steps(part: Watched, steps: &'static [Steps]) -> Watched {
    Watched { steps, ..part }
}

const PASSES: &[Point] = &[read(&["forEach", "spliterator"])];
const SPLIT: &[Point] = &[read(&["spliterator"])];
const EACH: &[Point] = &[read(&["forEach"])];

/// Classes that must be loaded before the collection classes are rewritten. The CDS archive of JDK 25 contains these
/// classes with resolved calls. If they were loaded later, they would call the original methods without hooks.
pub(super) const CALLERS: &[&str] = &[
    "java/util/HashMap$KeyIterator",
    "java/util/HashMap$ValueIterator",
    "java/util/HashMap$EntryIterator",
    "java/util/LinkedHashMap$LinkedKeyIterator",
    "java/util/LinkedHashMap$LinkedValueIterator",
    "java/util/LinkedHashMap$LinkedEntryIterator",
    "java/util/concurrent/ConcurrentHashMap$KeyIterator",
    "java/util/concurrent/ConcurrentHashMap$ValueIterator",
    "java/util/concurrent/ConcurrentHashMap$EntryIterator",
    "java/util/TreeMap$KeySet",
    "java/util/TreeMap$Values",
    "java/util/TreeMap$EntrySet",
    "java/util/TreeMap$TreeMapSpliterator",
    "java/util/TreeMap$NavigableSubMap",
    "java/util/TreeMap$AscendingSubMap",
    "java/util/TreeMap$DescendingSubMap",
    "java/util/WeakHashMap$KeyIterator",
    "java/util/WeakHashMap$ValueIterator",
    "java/util/WeakHashMap$EntryIterator",
    "java/util/IdentityHashMap$KeyIterator",
    "java/util/IdentityHashMap$ValueIterator",
    "java/util/IdentityHashMap$EntryIterator",
    "java/util/Hashtable$KeySet",
    "java/util/Hashtable$ValueCollection",
    "java/util/concurrent/ConcurrentSkipListSet",
    "java/util/concurrent/ConcurrentSkipListMap$KeySet",
    "java/util/concurrent/ConcurrentSkipListMap$Values",
    "java/util/concurrent/ConcurrentSkipListMap$EntrySet",
    "java/util/concurrent/ConcurrentSkipListMap$KeyIterator",
    "java/util/concurrent/ConcurrentSkipListMap$ValueIterator",
    "java/util/concurrent/ConcurrentSkipListMap$EntryIterator",
    "java/util/concurrent/ConcurrentSkipListMap$SubMap$SubMapKeyIterator",
    "java/util/concurrent/ConcurrentSkipListMap$SubMap$SubMapValueIterator",
    "java/util/concurrent/ConcurrentSkipListMap$SubMap$SubMapEntryIterator",
    "java/util/concurrent/ConcurrentLinkedDeque$Itr",
    "java/util/concurrent/ConcurrentLinkedDeque$DescendingItr",
    "java/util/concurrent/LinkedBlockingDeque$Itr",
    "java/util/concurrent/LinkedBlockingDeque$DescendingItr",
    "java/util/concurrent/ArrayBlockingQueue$Itr",
];

/// All classes with hooks.
pub(crate) const ALL: &[Watched] = &[
    HASH_MAP,
    inner_class(
        HASH_MAP,
        "java/util/HashMap$HashIterator",
        Collection::Argument(1),
        &[read(&["<init>"])],
    ),
    view("java/util/HashMap$KeySet", MAP_OUTSIDE, PASSES),
    view("java/util/HashMap$Values", MAP_OUTSIDE, PASSES),
    view("java/util/HashMap$EntrySet", MAP_OUTSIDE, PASSES),
    inner_class(
        HASH_MAP,
        "java/util/HashSet",
        Collection::Field("java/util/HashSet", "map", MAP_OUTSIDE),
        &[read(&["spliterator"])],
    ),
    LINKED_HASH_MAP,
    // The spliterators of the following views need no hook: they call `iterator`, which has one.
    view("java/util/LinkedHashMap$LinkedKeySet", LINKED_OUTSIDE, EACH),
    view("java/util/LinkedHashMap$LinkedValues", LINKED_OUTSIDE, EACH),
    view(
        "java/util/LinkedHashMap$LinkedEntrySet",
        LINKED_OUTSIDE,
        EACH,
    ),
    inner_class(
        LINKED_HASH_MAP,
        "java/util/LinkedHashMap$LinkedHashIterator",
        Collection::Argument(1),
        &[read(&["<init>"])],
    ),
    CONCURRENT_MAP,
    inner_class(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$BaseIterator",
        Collection::Argument(5),
        &[read(&["<init>"])],
    ),
    inner_class(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$KeySetView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    inner_class(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$ValuesView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    inner_class(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$EntrySetView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    TREE_MAP,
    ARRAY_LIST,
    inner_class(
        ARRAY_LIST,
        "java/util/ArrayList$SubList",
        Collection::Field(
            "java/util/ArrayList$SubList",
            "root",
            "Ljava/util/ArrayList;",
        ),
        &[read(&[
            "get",
            "indexOf",
            "lastIndexOf",
            "listIterator(I",
            "spliterator",
            "toArray",
        ])],
    ),
    LINKED_LIST,
    ARRAY_DEQUE,
    PRIORITY_QUEUE,
    PRIORITY_BLOCKING_QUEUE,
    VECTOR,
    HASHTABLE,
    with_steps(
        view_of(
            HASHTABLE,
            "java/util/Hashtable$EntrySet",
            "Ljava/util/Hashtable;",
            &[read(&["contains"])],
        ),
        HASHTABLE.steps,
    ),
    with_steps(
        inner_class(
            HASHTABLE,
            "java/util/Hashtable$Enumerator",
            Collection::This,
            &[],
        ),
        HASHTABLE.steps,
    ),
    WEAK_MAP,
    inner_class(
        WEAK_MAP,
        "java/util/WeakHashMap$HashIterator",
        Collection::Argument(1),
        &[read(&["<init>"])],
    ),
    view_of(
        WEAK_MAP,
        "java/util/WeakHashMap$KeySet",
        WEAK_OUTSIDE,
        SPLIT,
    ),
    view_of(
        WEAK_MAP,
        "java/util/WeakHashMap$Values",
        WEAK_OUTSIDE,
        SPLIT,
    ),
    view_of(
        WEAK_MAP,
        "java/util/WeakHashMap$EntrySet",
        WEAK_OUTSIDE,
        &[read(&["contains", "spliterator"])],
    ),
    IDENTITY_MAP,
    with_steps(
        inner_class(
            IDENTITY_MAP,
            "java/util/IdentityHashMap$IdentityHashMapIterator",
            Collection::Argument(1),
            &[read(&["<init>"])],
        ),
        IDENTITY_MAP.steps,
    ),
    view_of(
        IDENTITY_MAP,
        "java/util/IdentityHashMap$KeySet",
        IDENTITY_OUTSIDE,
        IDENTITY_PASSES,
    ),
    view_of(
        IDENTITY_MAP,
        "java/util/IdentityHashMap$Values",
        IDENTITY_OUTSIDE,
        IDENTITY_PASSES,
    ),
    view_of(
        IDENTITY_MAP,
        "java/util/IdentityHashMap$EntrySet",
        IDENTITY_OUTSIDE,
        IDENTITY_PASSES,
    ),
    concurrent::LINKED_BLOCKING_QUEUE,
    concurrent::LINKED_BLOCKING_DEQUE,
    concurrent::ARRAY_BLOCKING_QUEUE,
    concurrent::LINKED_QUEUE,
    concurrent::LINKED_QUEUE_ITERATOR,
    concurrent::LINKED_DEQUE,
    concurrent::SKIP_LIST_MAP,
    concurrent::SKIP_LIST_ITERATOR,
    concurrent::SUB_MAP,
    concurrent::SUB_MAP_ITERATOR,
    concurrent::COPIED_LIST,
];
