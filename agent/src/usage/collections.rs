//! The JDK's collections that are watched.
//!
//! What a method tells when it is entered depends on what it calls: of several that call each other one is here. What that is was
//! read in the sources of JDK 17 and 25, and is tested with each JDK, method by method.

use heapdiff_sites::usage::Kind;

use super::points::{
    Collection, Gate, Many, Point, Size, Watched, cleared, point, put, read, removed,
};

const MAP: &str = "java/util/HashMap";
const MAP_GATE: Gate = Gate::Changes("modCount");
const MAP_SIZE: Size = Size::After("size");
const LINKED_MAP: &str = "java/util/LinkedHashMap";

/// A map.
const fn of_map(class: &'static str, points: &'static [Point]) -> Watched {
    Watched {
        class,
        of: MAP,
        collection: Collection::This,
        gate: MAP_GATE,
        size: MAP_SIZE,
        points,
    }
}

const fn of_its(
    outer: Watched,
    class: &'static str,
    collection: Collection,
    points: &'static [Point],
) -> Watched {
    Watched {
        class,
        collection,
        points,
        ..outer
    }
}

const HASH_MAP: Watched = of_map(
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
const LINKED_HASH_MAP: Watched = of_map(
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

/// A view of a map, which has it in the field of its outer object.
const fn view(class: &'static str, outside: &'static str, points: &'static [Point]) -> Watched {
    Watched {
        class,
        of: MAP,
        collection: Collection::Field(class, "this$0", outside),
        gate: MAP_GATE,
        size: MAP_SIZE,
        points,
    }
}

const CONCURRENT: &str = "java/util/concurrent/ConcurrentHashMap";
const NODES: &str = "[Ljava/util/concurrent/ConcurrentHashMap$Node;";
const CONCURRENT_MAP: Watched = Watched {
    class: CONCURRENT,
    of: CONCURRENT,
    collection: Collection::This,
    gate: Gate::Array("table", NODES),
    size: Size::Asked,
    points: &[
        // What is put is counted in one place, and what is removed.
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
};
const CONCURRENT_VIEW: Collection = Collection::Field(
    "java/util/concurrent/ConcurrentHashMap$CollectionView",
    "map",
    "Ljava/util/concurrent/ConcurrentHashMap;",
);

const TREE: &str = "java/util/TreeMap";
const TREE_MAP: Watched = Watched {
    class: TREE,
    of: TREE,
    collection: Collection::This,
    gate: Gate::Changes("modCount"),
    size: Size::Field("size"),
    points: &[
        put(&["addEntry", "addEntryToEmptyMap"]),
        // Before JDK 15 each method that puts has its own code: the size tells.
        point(Kind::Put, Many::Some, &["put|addEntry"]),
        removed(&["deleteEntry"]),
        cleared(&["clear"]),
        // What goes through it, by itself or by a view, asks for the first entry that it wants.
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
};

const LIST: &str = "java/util/ArrayList";
const ARRAY_LIST: Watched = Watched {
    class: LIST,
    of: LIST,
    collection: Collection::This,
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
};

const LINKED_LIST: Watched = Watched {
    class: "java/util/LinkedList",
    of: "java/util/LinkedList",
    collection: Collection::This,
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
};

const ARRAY_DEQUE: Watched = Watched {
    class: "java/util/ArrayDeque",
    of: "java/util/ArrayDeque",
    collection: Collection::This,
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
};

const PRIORITY_QUEUE: Watched = Watched {
    class: "java/util/PriorityQueue",
    of: "java/util/PriorityQueue",
    collection: Collection::This,
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
};

const PRIORITY_BLOCKING: &str = "java/util/concurrent/PriorityBlockingQueue";
const PRIORITY_BLOCKING_QUEUE: Watched = Watched {
    class: PRIORITY_BLOCKING,
    of: PRIORITY_BLOCKING,
    collection: Collection::This,
    gate: Gate::Length("queue"),
    size: Size::Field("size"),
    points: &[
        put(&["offer(Ljava/lang/Object;)"]),
        point(Kind::Removed, Many::IfAny, &["dequeue"]),
        removed(&["removeAt"]),
        cleared(&["clear"]),
        // Iterators, spliterators and others have it copied.
        read(&["peek", "contains", "forEach", "toArray"]),
    ],
};

const VECTOR: Watched = Watched {
    class: "java/util/Vector",
    of: "java/util/Vector",
    collection: Collection::This,
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
};

const LINKED_BLOCKING: &str = "java/util/concurrent/LinkedBlockingQueue";
const LINKED_BLOCKING_QUEUE: Watched = Watched {
    class: LINKED_BLOCKING,
    of: LINKED_BLOCKING,
    collection: Collection::This,
    // There are few of them, and their size falls.
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
};

const COPIED: &str = "java/util/concurrent/CopyOnWriteArrayList";
const COPIED_LIST: Watched = Watched {
    class: COPIED,
    of: COPIED,
    collection: Collection::This,
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
};

const PASSES: &[Point] = &[read(&["forEach", "spliterator"])];
const EACH: &[Point] = &[read(&["forEach"])];

/// Classes that are loaded before others are changed: JDK 25 has an archive in which their calls are resolved already, and goes on
/// to call what a method was before where they are loaded later.
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
];

/// All of them.
pub(crate) const ALL: &[Watched] = &[
    HASH_MAP,
    of_its(
        HASH_MAP,
        "java/util/HashMap$HashIterator",
        Collection::Argument(1),
        &[read(&["<init>"])],
    ),
    view("java/util/HashMap$KeySet", MAP_OUTSIDE, PASSES),
    view("java/util/HashMap$Values", MAP_OUTSIDE, PASSES),
    view("java/util/HashMap$EntrySet", MAP_OUTSIDE, PASSES),
    of_its(
        HASH_MAP,
        "java/util/HashSet",
        Collection::Field("java/util/HashSet", "map", MAP_OUTSIDE),
        &[read(&["spliterator"])],
    ),
    LINKED_HASH_MAP,
    // Their spliterators ask for an iterator.
    view("java/util/LinkedHashMap$LinkedKeySet", LINKED_OUTSIDE, EACH),
    view("java/util/LinkedHashMap$LinkedValues", LINKED_OUTSIDE, EACH),
    view(
        "java/util/LinkedHashMap$LinkedEntrySet",
        LINKED_OUTSIDE,
        EACH,
    ),
    of_its(
        LINKED_HASH_MAP,
        "java/util/LinkedHashMap$LinkedHashIterator",
        Collection::Argument(1),
        &[read(&["<init>"])],
    ),
    CONCURRENT_MAP,
    of_its(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$BaseIterator",
        Collection::Argument(5),
        &[read(&["<init>"])],
    ),
    of_its(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$KeySetView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    of_its(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$ValuesView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    of_its(
        CONCURRENT_MAP,
        "java/util/concurrent/ConcurrentHashMap$EntrySetView",
        CONCURRENT_VIEW,
        PASSES,
    ),
    TREE_MAP,
    ARRAY_LIST,
    of_its(
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
    LINKED_BLOCKING_QUEUE,
    COPIED_LIST,
];
