import java.lang.ref.Reference;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Set;
import java.util.Stack;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Vector;
import java.util.WeakHashMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Tests what the agent counts for collections of each kind. For each method, compares the counts with the expected ones: elements put,
 * elements removed, and reads. Prints the differences, the number of comparisons, and then the number of collections that are still
 * watched. Argument: how often each method is called. With a second argument, eight threads use one collection of each kind at the same
 * time, and the sums are compared.
 *
 * <p>Needs {@code --add-opens java.base/java.lang=ALL-UNNAMED}, and the same for {@code java.util}, because it reads the agent's counts from the objects there.
 */
public final class Used {
    /** Minimum number of elements of a collection that the agent watches. */
    private static final int LARGE = 256;
    private static final int FIRST = 300;

    /** A test of one method of one class. */
    private static final class Case<C> {
        final String name;
        final C collection;
        final BiConsumer<C, Integer> filler;
        final BiConsumer<C, Integer> call;
        final int times;
        final long[] expected;
        /** True if the agent does not count the removals. They show only in the size, and are too few for the reader of a dump to notice. */
        boolean bulk;

        Case(String name, C collection, BiConsumer<C, Integer> filler, BiConsumer<C, Integer> call, int times, long[] expected) {
            this.name = name;
            this.collection = collection;
            this.filler = filler;
            this.call = call;
            this.times = times;
            this.expected = expected;
        }

        void fill(int from, int to) {
            for (int i = from; i < to; i++) {
                filler.accept(collection, i);
            }
        }

        /** Adds one element. The agent watches GROWN collections only once they grew by LARGE, so these also grow and shrink again. */
        void pass(int i) {
            fill(i, i + 1);
            if (GROWN.contains(collection.getClass())) {
                fill(PASSING, PASSING + LARGE + 4);
                for (int passing = PASSING; passing < PASSING + LARGE + 4; passing++) {
                    if (collection instanceof Map) {
                        ((Map<?, ?>) collection).remove(passing);
                    } else {
                        ((Collection<?>) collection).remove(passing);
                    }
                }
            }
        }

        /** Calls the method, and returns what the agent counted during the calls: puts, removals and reads. */
        long[] run() throws Exception {
            long[] before = counted(collection);
            if (before == null) {
                return null;
            }
            long size = size();
            for (int i = 0; i < times; i++) {
                call.accept(collection, i);
            }
            long[] after = counted(collection);
            for (int kind = 0; kind < 3; kind++) {
                after[kind] -= before[kind];
            }
            if (isExact()) {
                return after;
            }
            // Some added or removed elements are not counted, but show in the size. Correct the counts, as the reader of a dump does.
            long grown = size() - size;
            if (grown > after[0] - after[1]) {
                after[0] = grown + after[1];
            } else if (grown + LARGE < after[0] - after[1] || bulk) {
                after[1] = after[0] - grown;
            }
            return after;
        }

        /** True if the counts are not corrected by the size, because every change is counted or because the size is unknown. */
        private boolean isExact() {
            return EXACT.contains(collection.getClass());
        }

        private int size() {
            return collection instanceof Map ? ((Map<?, ?>) collection).size() : ((Collection<?>) collection).size();
        }
    }

    private static final Set<Class<?>> EXACT = Set.of(
        Hashtable.class, WeakHashMap.class, IdentityHashMap.class, ConcurrentSkipListMap.class, ConcurrentSkipListSet.class,
        ConcurrentLinkedQueue.class, ConcurrentLinkedDeque.class, LinkedBlockingDeque.class, ArrayBlockingQueue.class);
    private static final Set<Class<?>> GROWN = Set.of(
        ConcurrentSkipListMap.class, ConcurrentSkipListSet.class, ConcurrentLinkedQueue.class, ConcurrentLinkedDeque.class);
    private static final int PASSING = 150_000;
    private static final List<Case<?>> CASES = new ArrayList<>();
    /** One object for each key, kept alive: some maps compare keys by identity, or drop keys that nothing else holds. */
    private static final Integer[] KEYS = new Integer[200_000];

    private static Integer key(int i) {
        return KEYS[i];
    }

    private static int n;

    /** Adds test cases for the methods of one class. */
    private static final class Of<C> {
        final String name;
        final Supplier<C> make;
        final BiConsumer<C, Integer> filler;

        Of(String name, Supplier<C> make, BiConsumer<C, Integer> filler) {
            this.name = name;
            this.make = make;
            this.filler = filler;
        }

        /** Adds a test case that calls a method {@code n} times, with {@code i} from 0 to n - 1. Each call must add the given numbers to the counts. */
        Of<C> each(String call, long put, long removed, long read, BiConsumer<C, Integer> made) {
            CASES.add(new Case<>(name + "." + call, make.get(), filler, made, n, new long[] {n * put, n * removed, n * read}));
            return this;
        }

        /** Adds a test case that calls a method once. */
        Of<C> once(String call, long put, long removed, long read, Consumer<C> made) {
            CASES.add(new Case<>(name + "." + call, make.get(), filler, (c, i) -> made.accept(c), 1, new long[] {put, removed, read}));
            return this;
        }
    }

    private static final int SIZE = FIRST + 8;

    /** Tests the methods that all maps have. Each map contains the keys from 0 to {@code SIZE}. */
    private static void map(String name, Supplier<Map<Integer, Integer>> make) {
        Map<Integer, Integer> more = new HashMap<>();
        // Before JDK 15, putIfAbsent of TreeMap first reads the map and then puts.
        int version = Runtime.version().feature();
        boolean weak = make.get() instanceof WeakHashMap;
        boolean tree = make.get() instanceof TreeMap;
        boolean identity = make.get() instanceof IdentityHashMap;
        // WeakHashMap and IdentityHashMap inherit methods such as putIfAbsent from the interface Map. These first read the map, too.
        int asks = tree && version < 15 || weak || identity ? 1 : 0;
        int asksForPair = tree || weak || identity && version < 20 ? 1 : 0;
        for (int i = 0; i < 100; i++) {
            more.put(key(100_000 + i), i);
        }
        new Of<>(name, make, (m, i) -> m.put(key(i), i))
            .each("put", 1, 0, 0, (m, i) -> m.put(key(SIZE + i), i))
            .each("put of an existing key", 0, 0, 0, (m, i) -> m.put(7, i))
            .each("putIfAbsent", 1, 0, asks, (m, i) -> m.putIfAbsent(key(SIZE + i), i))
            .each("putIfAbsent of an existing key", 0, 0, asks, (m, i) -> m.putIfAbsent(7, i))
            .once("putAll", 100, 0, 0, m -> m.putAll(more))
            .each("get", 0, 0, 1, (m, i) -> m.get(key(i)))
            .each("getOrDefault", 0, 0, 1, (m, i) -> m.getOrDefault(7, 3))
            .each("containsKey", 0, 0, 1, (m, i) -> m.containsKey(key(i)))
            .once("containsValue", 0, 0, 1, m -> m.containsValue(7))
            .each("keySet().contains", 0, 0, 1, (m, i) -> m.keySet().contains(key(i)))
            .once("remove", 0, 1, 0, m -> m.remove(5))
            .each("remove of a missing element", 0, 0, 0, (m, i) -> m.remove(-1 - i))
            .each("put and remove", 1, 1, 0, (m, i) -> {
                m.put(key(SIZE + i), i);
                m.remove(key(SIZE + i));
            })
            .once("remove of a key with its value", 0, 1, asksForPair, m -> m.remove(5, 5))
            .once("keySet().remove", 0, 1, weak ? 1 : 0, m -> m.keySet().remove(5))
            .once("clear", 0, SIZE, 0, Map::clear)
            .once("keySet().clear", 0, SIZE, 0, m -> m.keySet().clear())
            .once("an iterator", 0, 0, 1, m -> {
                for (Integer key : m.keySet()) {
                    sum += key;
                }
            })
            .once("an iterator over values", 0, 0, 1, m -> {
                for (Integer value : m.values()) {
                    sum += value;
                }
            })
            .once("an iterator over entries", 0, 0, 1, m -> {
                for (Map.Entry<Integer, Integer> entry : m.entrySet()) {
                    sum += entry.getValue();
                }
            })
            .once("iterator.remove", 0, 10, 1, m -> {
                Iterator<Integer> keys = m.keySet().iterator();
                for (int i = 0; i < 10; i++) {
                    keys.next();
                    keys.remove();
                }
            })
            .once("values().removeIf", 0, 100, 1, m -> m.values().removeIf(v -> v < 100))
            .once("forEach", 0, 0, 1, m -> m.forEach((k, v) -> sum += v))
            .once("keySet().forEach", 0, 0, 1, m -> m.keySet().forEach(k -> sum += k))
            .once("values().forEach", 0, 0, 1, m -> m.values().forEach(v -> sum += v))
            .once("entrySet().forEach", 0, 0, 1, m -> m.entrySet().forEach(e -> sum += e.getValue()))
            .once("keySet().stream()", 0, 0, 1, m -> sum += m.keySet().stream().mapToInt(k -> k).sum())
            .once("values().stream()", 0, 0, 1, m -> sum += m.values().stream().mapToInt(k -> k).sum())
            .once("entrySet().stream()", 0, 0, 1, m -> sum += m.entrySet().stream().mapToInt(Map.Entry::getKey).sum())
            .once("keySet().toArray", 0, 0, 1, m -> sum += m.keySet().toArray().length)
            .once("values().toArray", 0, 0, 1, m -> sum += m.values().toArray(new Integer[0]).length)
            .each("computeIfAbsent", 1, 0, 1, (m, i) -> m.computeIfAbsent(key(SIZE + i), k -> k))
            .each("computeIfAbsent of an existing key", 0, 0, 1, (m, i) -> m.computeIfAbsent(7, k -> k))
            .each("computeIfPresent", 0, 0, 1, (m, i) -> m.computeIfPresent(7, (k, v) -> v + 1))
            .once("computeIfPresent that removes", 0, 1, 1, m -> m.computeIfPresent(7, (k, v) -> null))
            .each("compute", 1, 0, 1, (m, i) -> m.compute(key(SIZE + i), (k, v) -> k))
            .once("compute that removes", 0, 1, 1, m -> m.compute(7, (k, v) -> null))
            .each("merge", 1, 0, 1, (m, i) -> m.merge(key(SIZE + i), i, Integer::sum))
            .each("merge of an existing key", 0, 0, 1, (m, i) -> m.merge(7, i, Integer::sum))
            .once("merge that removes", 0, 1, 1, m -> m.merge(7, 1, (a, b) -> null))
            .once("replaceAll", 0, 0, 1, m -> m.replaceAll((k, v) -> v + 1))
            .once("a copy", 0, 0, 1, m -> sum += new HashMap<>(m).size())
            .each("size and isEmpty", 0, 0, 0, (m, i) -> sum += m.isEmpty() ? 1 : m.size());
    }

    /** Tests the methods that all sets have. */
    private static void set(String name, Supplier<Set<Integer>> make) {
        List<Integer> more = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            more.add(100_000 + i);
        }
        new Of<>(name, make, Set::add)
            .each("add", 1, 0, 0, (s, i) -> s.add(SIZE + i))
            .each("add of an existing element", 0, 0, 0, (s, i) -> s.add(7))
            .once("addAll", 100, 0, 0, s -> s.addAll(more))
            .each("contains", 0, 0, 1, Set::contains)
            .once("remove", 0, 1, 0, s -> s.remove(5))
            .once("clear", 0, SIZE, 0, Set::clear)
            .once("an iterator", 0, 0, 1, s -> {
                for (Integer element : s) {
                    sum += element;
                }
            })
            .once("removeIf", 0, 100, 1, s -> s.removeIf(e -> e < 100))
            .once("forEach", 0, 0, 1, s -> s.forEach(e -> sum += e))
            .once("stream", 0, 0, 1, s -> sum += s.stream().mapToInt(e -> e).sum())
            .once("toArray", 0, 0, 1, s -> sum += s.toArray().length);
    }

    private static List<Integer> more() {
        List<Integer> more = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            more.add(100_000 + i);
        }
        return more;
    }

    /** Marks the last test case: the removals of its call show only in the size of the collection. */
    private static void bulk() {
        CASES.get(CASES.size() - 1).bulk = true;
    }

    /** Tests the methods that all lists have. */
    private static void list(String name, Supplier<List<Integer>> make) {
        List<Integer> more = more();
        boolean copied = make.get() instanceof CopyOnWriteArrayList;
        boolean linked = make.get() instanceof LinkedList;
        Of<List<Integer>> of = new Of<>(name, make, List::add)
            .each("add", 1, 0, 0, List::add)
            .each("add at an index", 1, 0, 0, (l, i) -> l.add(7, i))
            .once("addAll", 100, 0, 0, l -> l.addAll(more))
            .once("addAll at an index", 100, 0, 0, l -> l.addAll(7, more))
            .each("get", 0, 0, 1, (l, i) -> l.get(7))
            .each("set", 0, 0, 0, (l, i) -> l.set(7, i))
            .each("contains", 0, 0, 1, List::contains)
            .each("indexOf", 0, 0, 1, List::indexOf)
            .each("lastIndexOf", 0, 0, 1, List::lastIndexOf)
            .once("remove at an index", 0, 1, 0, l -> l.remove(5))
            .once("remove", 0, 1, make.get() instanceof Vector ? 1 : 0, l -> l.remove((Integer) 5))
            .once("clear", 0, SIZE, 0, List::clear)
            .once("an iterator", 0, 0, 1, l -> {
                for (Integer element : l) {
                    sum += element;
                }
            })
            .once("listIterator", 0, 0, 1, l -> sum += l.listIterator().next())
            .once("listIterator from an index", 0, 0, 1, l -> sum += l.listIterator(7).next())
            .once("forEach", 0, 0, 1, l -> l.forEach(e -> sum += e))
            .once("stream", 0, 0, 1, l -> sum += l.stream().mapToInt(e -> e).sum())
            .once("toArray", 0, 0, 1, l -> sum += l.toArray().length)
            .once("toArray into another", 0, 0, 1, l -> sum += l.toArray(new Integer[0]).length)
            .once("a copy", 0, 0, 1, l -> sum += new ArrayList<>(l).size());
        // For removeIf, a linked list is iterated, which counts as a read.
        of.once("removeIf", 0, 100, linked ? 1 : 0, l -> l.removeIf(e -> e < 100));
        bulk();
        if (!copied) {
            of.once("iterator.remove", 0, 10, 1, l -> {
                Iterator<Integer> elements = l.iterator();
                for (int i = 0; i < 10; i++) {
                    elements.next();
                    elements.remove();
                }
            });
        }
        if (!linked && !copied) {
            of.once("subList.clear", 0, 50, 0, l -> l.subList(0, 50).clear());
        }
    }

    /** Tests the methods that all queues have. */
    private static void queue(String name, Supplier<Queue<Integer>> make) {
        List<Integer> more = more();
        new Of<>(name, make, Queue::add)
            .each("add", 1, 0, 0, (q, i) -> q.add(SIZE + i))
            .each("offer", 1, 0, 0, (q, i) -> q.offer(SIZE + i))
            .once("addAll", 100, 0, 0, q -> q.addAll(more))
            .each("peek", 0, 0, 1, (q, i) -> q.peek())
            .each("element", 0, 0, 1, (q, i) -> q.element())
            .each("contains", 0, 0, 1, Queue::contains)
            .once("poll", 0, 1, 0, Queue::poll)
            .once("poll until empty, and again", 0, SIZE, 0, q -> {
                for (int i = 0; i < SIZE + 10; i++) {
                    q.poll();
                }
            })
            .each("offer and poll", 1, 1, 0, (q, i) -> {
                q.offer(i);
                q.poll();
            })
            .once("remove the first", 0, 1, 0, Queue::remove)
            .once("remove", 0, 1, 0, q -> q.remove((Object) 5))
            .once("remove of a missing element", 0, 0, 0, q -> q.remove((Object) (-5)))
            .once("clear", 0, SIZE, 0, Queue::clear)
            .once("an iterator", 0, 0, 1, q -> {
                for (Integer element : q) {
                    sum += element;
                }
            })
            .once("iterator.remove", 0, 10, 1, q -> {
                Iterator<Integer> elements = q.iterator();
                for (int i = 0; i < 10; i++) {
                    elements.next();
                    elements.remove();
                }
            })
            .once("forEach", 0, 0, 1, q -> q.forEach(e -> sum += e))
            .once("stream", 0, 0, 1, q -> sum += q.stream().mapToInt(e -> e).sum())
            .once("toArray", 0, 0, 1, q -> sum += q.toArray().length)
            .once("toArray into another", 0, 0, 1, q -> sum += q.toArray(new Integer[0]).length);
    }

    /** Tests the methods that only some maps have. */
    private static void furtherMaps() {
        new Of<>("Hashtable", () -> new Hashtable<Integer, Integer>(), (t, i) -> t.put(i, i))
            .each("replace", 0, 0, 1, (t, i) -> t.replace(7, i))
            .once("contains", 0, 0, 1, t -> t.contains(7))
            .once("keys", 0, 0, 1, t -> sum += t.keys().nextElement())
            .once("elements", 0, 0, 1, t -> sum += t.elements().nextElement())
            .once("entrySet().contains", 0, 0, 1, t -> t.entrySet().contains(Map.entry(7, 7)))
            .once("entrySet().remove", 0, 1, 0, t -> t.entrySet().remove(Map.entry(7, 7)))
            .once("hashCode", 0, 0, 1, t -> sum += t.hashCode())
            .once("toString", 0, 0, 1, t -> sum += t.toString().length())
            .once("clone", 0, 0, 1, t -> sum += ((Map<?, ?>) t.clone()).size());
        new Of<>("IdentityHashMap", () -> new IdentityHashMap<Integer, Integer>(), (m, i) -> m.put(key(i), i))
            .each("replace", 0, 0, 1, (m, i) -> m.replace(key(7), i))
            .once("entrySet().contains of an entry from an iterator", 0, 0, 2, m -> m.entrySet().contains(m.entrySet().iterator().next()));
        new Of<>("WeakHashMap", () -> new WeakHashMap<Integer, Integer>(), (m, i) -> m.put(key(i), i))
            .once("entrySet().contains", 0, 0, 1, m -> m.entrySet().contains(Map.entry(7, 7)))
            .once("keys that die", 100, 100, 0, Used::die);
        new Of<>("ConcurrentSkipListMap", () -> new ConcurrentSkipListMap<Integer, Integer>(), (m, i) -> m.put(i, i))
            .each("replace", 0, 0, 1, (m, i) -> m.replace(7, i))
            .each("firstKey", 0, 0, 1, (m, i) -> sum += m.firstKey())
            .each("lastEntry", 0, 0, 1, (m, i) -> sum += m.lastEntry().getKey())
            .each("lowerKey", 0, 0, 1, (m, i) -> sum += m.lowerKey(7))
            .each("floorEntry", 0, 0, 1, (m, i) -> sum += m.floorEntry(7).getKey())
            .each("ceilingKey", 0, 0, 1, (m, i) -> sum += m.ceilingKey(7))
            .each("higherEntry", 0, 0, 1, (m, i) -> sum += m.higherEntry(7).getKey())
            .once("pollFirstEntry", 0, 1, 0, m -> m.pollFirstEntry())
            .once("pollLastEntry", 0, 1, 0, m -> m.pollLastEntry())
            .once("entrySet().removeIf", 0, 100, 1, m -> m.entrySet().removeIf(e -> e.getKey() < 100))
            .once("descendingMap().forEach", 0, 0, 1, m -> m.descendingMap().forEach((k, v) -> sum += v))
            .each("subMap().get", 0, 0, 1, (m, i) -> sum += m.subMap(5, 10).get(7))
            .each("subMap().put", 1, 0, 0, (m, i) -> m.tailMap(5).put(SIZE + i, i))
            .once("subMap().remove", 0, 1, 0, m -> m.subMap(5, 10).remove(7))
            .once("subMap().clear", 0, 5, 0, m -> m.subMap(5, 10).clear())
            .once("subMap().firstKey", 0, 0, 1, m -> sum += m.subMap(5, 10).firstKey())
            .once("subMap().lowerKey", 0, 0, 1, m -> sum += m.subMap(5, 10).lowerKey(9))
            .once("subMap().higherEntry", 0, 0, 1, m -> sum += m.subMap(5, 10).higherEntry(7).getKey())
            .once("subMap().values() passed", 0, 0, 1, m -> {
                for (Integer value : m.headMap(10).values()) {
                    sum += value;
                }
            })
            .once("subMap().pollFirstEntry", 0, 1, 0, m -> m.tailMap(5).pollFirstEntry());
        new Of<>("ConcurrentSkipListSet", () -> new ConcurrentSkipListSet<Integer>(), Set::add)
            .once("first", 0, 0, 1, set -> sum += set.first())
            .once("pollFirst", 0, 1, 0, ConcurrentSkipListSet::pollFirst)
            .once("descendingIterator", 0, 0, 1, set -> sum += set.descendingIterator().next())
            .once("headSet().contains", 0, 0, 1, set -> set.headSet(9).contains(7));
    }

    /** Puts keys that nothing else holds, and waits until the map has dropped them. */
    private static void die(Map<Integer, Integer> map) {
        int size = map.size();
        List<Integer> held = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            held.add(Integer.valueOf(300_000 + i));
            map.put(held.get(i), i);
        }
        Reference.reachabilityFence(held);
        held = null;
        long end = System.nanoTime() + 60_000_000_000L;
        while (map.size() > size && System.nanoTime() < end) {
            System.gc();
        }
    }

    /** Tests the methods that all deques have. */
    private static void deque(String name, Supplier<Deque<Integer>> make) {
        new Of<>(name, make, Deque::add)
            .each("addFirst", 1, 0, 0, Deque::addFirst)
            .each("addLast", 1, 0, 0, Deque::addLast)
            .each("offerFirst", 1, 0, 0, Deque::offerFirst)
            .each("offerLast", 1, 0, 0, Deque::offerLast)
            .each("push and pop", 1, 1, 0, (d, i) -> {
                d.push(i);
                sum += d.pop();
            })
            .once("removeFirst", 0, 1, 0, Deque::removeFirst)
            .once("removeLast", 0, 1, 0, Deque::removeLast)
            .once("pollLast until empty, and again", 0, SIZE, 0, d -> {
                for (int i = 0; i < SIZE + 10; i++) {
                    d.pollLast();
                }
            })
            .each("getFirst", 0, 0, 1, (d, i) -> sum += d.getFirst())
            .each("peekLast", 0, 0, 1, (d, i) -> sum += d.peekLast())
            .once("removeFirstOccurrence", 0, 1, 0, d -> d.removeFirstOccurrence(5))
            .once("removeLastOccurrence", 0, 1, 0, d -> d.removeLastOccurrence(5))
            .once("descendingIterator", 0, 5, 1, d -> {
                Iterator<Integer> elements = d.descendingIterator();
                for (int i = 0; i < 5; i++) {
                    elements.next();
                    elements.remove();
                }
            });
    }

    /** Tests the bulk methods of a concurrent queue. */
    private static void bulk(String name, Supplier<Queue<Integer>> make) {
        List<Integer> some = List.of(1, 2, 3, 4, 5);
        new Of<>(name, make, Queue::add)
            .once("removeIf", 0, 100, 0, q -> q.removeIf(e -> e < 100))
            .once("removeAll", 0, 5, 0, q -> q.removeAll(some))
            .once("retainAll", 0, SIZE - 5, 0, q -> q.retainAll(some))
            .once("toString", 0, 0, 1, q -> sum += q.toString().length());
    }

    /** Tests the methods that block. */
    private static void blocking(String name, Supplier<BlockingQueue<Integer>> make) {
        new Of<>(name, make, BlockingQueue::add)
            .each("put and take", 1, 1, 0, (q, i) -> {
                try {
                    q.put(i);
                    sum += q.take();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            })
            .each("offer and poll with a timeout", 1, 1, 0, (q, i) -> {
                try {
                    q.offer(i, 1, TimeUnit.SECONDS);
                    sum += q.poll(1, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            })
            .once("drainTo", 0, SIZE, 0, q -> q.drainTo(new ArrayList<>()))
            .once("drainTo with a maximum number", 0, 7, 0, q -> q.drainTo(new ArrayList<>(), 7));
    }

    /** A collection that eight threads use. */
    private static final class Shared {
        final String name;
        final Object collection;
        final Consumer<Integer> put;
        final Runnable read;
        /** Tries to remove an element. Returns null if there are no more. */
        final Supplier<Object> take;

        <C> Shared(String name, C collection, BiConsumer<C, Integer> put, Consumer<C> read, java.util.function.Function<C, Object> take) {
            this.name = name;
            this.collection = collection;
            this.put = i -> put.accept(collection, i);
            this.read = () -> read.accept(collection);
            this.take = () -> take.apply(collection);
        }
    }

    private static final int THREADS = 8;

    private static <C extends Queue<Integer>> Shared sharedQueue(String name, C queue) {
        return new Shared(name, queue, Queue::add, Queue::peek, Queue::poll);
    }

    /** Tries to remove one more element from a map. Returns null after the last one. */
    private static Object takeAny(Map<Integer, Integer> map) {
        // The keys are the numbers from 0 on. Each call tries to remove the next number, up to the number of puts.
        int next;
        synchronized (NEXT) {
            next = NEXT.merge(map.getClass(), 1, Integer::sum);
        }
        return next > FIRST + 3 + THREADS * n ? null : Boolean.valueOf(map.remove(next - 1) != null);
    }

    private static final Map<Class<?>, Integer> NEXT = new HashMap<>();

    /** Returns threads whose IDs are equal modulo 8. If the agent keeps counts by thread, these threads then use the same counts. */
    private static List<Thread> threads(Runnable work) {
        List<Thread> threads = new ArrayList<>();
        long first = -1;
        while (threads.size() < THREADS) {
            Thread thread = new Thread(work);
            first = first < 0 ? thread.getId() % 8 : first;
            if (thread.getId() % 8 == first) {
                threads.add(thread);
            }
        }
        return threads;
    }

    private static void together() throws Exception {
        List<Shared> all = List.of(
            new Shared("ConcurrentHashMap", new ConcurrentHashMap<Integer, Integer>(), (m, i) -> m.put(i, i), m -> m.get(7), Used::takeAny),
            new Shared("ConcurrentSkipListMap", new ConcurrentSkipListMap<Integer, Integer>(), (m, i) -> m.put(i, i), m -> m.get(7),
                ConcurrentNavigableMap::pollFirstEntry),
            new Shared("Hashtable", new Hashtable<Integer, Integer>(), (m, i) -> m.put(i, i), m -> m.get(7), Used::takeAny),
            sharedQueue("ConcurrentLinkedQueue", new ConcurrentLinkedQueue<>()),
            sharedQueue("ConcurrentLinkedDeque", new ConcurrentLinkedDeque<>()),
            sharedQueue("LinkedBlockingQueue", new LinkedBlockingQueue<>()),
            sharedQueue("LinkedBlockingDeque", new LinkedBlockingDeque<>()),
            sharedQueue("ArrayBlockingQueue", new ArrayBlockingQueue<>(FIRST + 3 + THREADS * n)),
            sharedQueue("PriorityBlockingQueue", new PriorityBlockingQueue<>()));
        for (int i = 0; i < FIRST + 3; i++) {
            if (i >= FIRST) {
                Thread.sleep(1100);
            }
            for (Shared one : all) {
                one.put.accept(i);
            }
        }
        int wrong = 0;
        for (Shared one : all) {
            long[] before = counted(one.collection);
            long total = THREADS * (long) n;
            CyclicBarrier barrier = new CyclicBarrier(THREADS);
            java.util.concurrent.atomic.AtomicInteger number = new java.util.concurrent.atomic.AtomicInteger();
            java.util.concurrent.atomic.AtomicLong taken = new java.util.concurrent.atomic.AtomicLong();
            List<Thread> threads = threads(() -> {
                int from = FIRST + 3 + number.getAndIncrement() * n;
                try {
                    barrier.await();
                    for (int i = 0; i < n; i++) {
                        one.put.accept(from + i);
                        one.read.run();
                    }
                    barrier.await();
                    long mine = 0;
                    for (Object took; (took = one.take.get()) != null; ) {
                        mine += took == Boolean.FALSE ? 0 : 1;
                    }
                    taken.addAndGet(mine);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            long[] counts = counted(one.collection);
            long[] expected = {total, total + FIRST + 3, total};
            for (int kind = 0; before != null && kind < 3; kind++) {
                counts[kind] -= before[kind];
            }
            String told = before == null ? "not watched" : java.util.Arrays.toString(counts);
            if (!told.equals(java.util.Arrays.toString(expected)) || taken.get() != expected[1]) {
                System.out.println("DIFFERS " + one.name + ": " + told + ", not " + java.util.Arrays.toString(expected) + ", taken " + taken);
                wrong++;
            }
        }
        System.out.println("compared " + all.size() + ", wrong " + wrong);
        ready(2);
    }

    static long sum;

    private static Object within(Class<?> of, String name, Object outer) throws Exception {
        Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(outer);
    }

    /** Returns the agent's counts for a collection, or null if it is not watched. If it consists of several collections, adds up their counts. */
    static long[] counted(Object used) throws Exception {
        Object collection = used;
        if (used instanceof HashSet) {
            collection = within(HashSet.class, "map", used);
        } else if (used instanceof TreeSet) {
            collection = within(TreeSet.class, "m", used);
        } else if (used instanceof ConcurrentSkipListSet) {
            collection = within(ConcurrentSkipListSet.class, "m", used);
        } else if (used instanceof CopyOnWriteArraySet) {
            collection = within(CopyOnWriteArraySet.class, "al", used);
        } else if (used instanceof ConcurrentHashMap.KeySetView) {
            collection = ((ConcurrentHashMap.KeySetView<?, ?>) used).getMap();
        }
        Class<?> usage = Class.forName("java.lang.HeapdiffUsage");
        Field table = usage.getDeclaredField("TABLE");
        Field counts = usage.getDeclaredField("counts");
        table.setAccessible(true);
        counts.setAccessible(true);
        long[] sums = null;
        for (Object one : (Object[]) table.get(null)) {
            if (one != null && ((Reference<?>) one).get() == collection) {
                long[] all = (long[]) counts.get(one);
                sums = sums == null ? new long[3] : sums;
                for (int i = 0; i < all.length; i++) {
                    if (i % 8 < 3) {
                        sums[i % 8] += all[i];
                    }
                }
            }
        }
        return sums;
    }

    private static void ready(int phase) throws Exception {
        System.out.println("READY " + phase);
        System.in.read();
    }

    public static void main(String[] arguments) throws Exception {
        n = Integer.parseInt(arguments[0]);
        for (int i = 0; i < KEYS.length; i++) {
            KEYS[i] = i;
        }
        ready(1);
        if (arguments.length > 1) {
            together();
            return;
        }
        map("HashMap", HashMap::new);
        map("LinkedHashMap", LinkedHashMap::new);
        map("LinkedHashMap by access", () -> new LinkedHashMap<>(16, 0.75f, true));
        set("HashSet", HashSet::new);
        set("LinkedHashSet", LinkedHashSet::new);
        map("ConcurrentHashMap", ConcurrentHashMap::new);
        map("TreeMap", TreeMap::new);
        map("Hashtable", Hashtable::new);
        map("WeakHashMap", WeakHashMap::new);
        map("IdentityHashMap", IdentityHashMap::new);
        map("ConcurrentSkipListMap", ConcurrentSkipListMap::new);
        furtherMaps();
        set("ConcurrentSkipListSet", ConcurrentSkipListSet::new);
        set("ConcurrentHashMap.newKeySet()", ConcurrentHashMap::newKeySet);
        set("TreeSet", TreeSet::new);
        list("ArrayList", ArrayList::new);
        list("LinkedList", LinkedList::new);
        list("Vector", Vector::new);
        list("Stack", Stack::new);
        list("CopyOnWriteArrayList", CopyOnWriteArrayList::new);
        queue("ArrayDeque", ArrayDeque::new);
        queue("LinkedList as a queue", LinkedList::new);
        queue("PriorityQueue", PriorityQueue::new);
        queue("LinkedBlockingQueue", LinkedBlockingQueue::new);
        queue("PriorityBlockingQueue", PriorityBlockingQueue::new);
        queue("ConcurrentLinkedQueue", ConcurrentLinkedQueue::new);
        queue("ConcurrentLinkedDeque", ConcurrentLinkedDeque::new);
        queue("LinkedBlockingDeque", LinkedBlockingDeque::new);
        queue("ArrayBlockingQueue", () -> new ArrayBlockingQueue<>(SIZE + n + 100));
        deque("ConcurrentLinkedDeque", ConcurrentLinkedDeque::new);
        deque("LinkedBlockingDeque", LinkedBlockingDeque::new);
        bulk("ConcurrentLinkedQueue", ConcurrentLinkedQueue::new);
        bulk("ConcurrentLinkedDeque", ConcurrentLinkedDeque::new);
        bulk("LinkedBlockingDeque", LinkedBlockingDeque::new);
        bulk("ArrayBlockingQueue", () -> new ArrayBlockingQueue<>(2 * SIZE));
        blocking("LinkedBlockingQueue", LinkedBlockingQueue::new);
        blocking("LinkedBlockingDeque", LinkedBlockingDeque::new);
        blocking("ArrayBlockingQueue", () -> new ArrayBlockingQueue<>(2 * SIZE));
        for (Case<?> one : CASES) {
            one.fill(0, FIRST);
        }
        // The agent watches a collection only after it has lived for a while.
        for (int i = FIRST; i < SIZE; i++) {
            Thread.sleep(1100);
            for (Case<?> one : CASES) {
                one.pass(i);
            }
        }
        int wrong = 0;
        for (Case<?> one : CASES) {
            long[] counted = one.run();
            String told = counted == null ? "not watched" : java.util.Arrays.toString(counted);
            if (!told.equals(java.util.Arrays.toString(one.expected))) {
                System.out.println("DIFFERS " + one.name + ": " + told + ", not " + java.util.Arrays.toString(one.expected));
                wrong++;
            }
        }
        System.out.println("compared " + CASES.size() + ", wrong " + wrong);
        ready(2);
        int counted = 0;
        for (Case<?> one : CASES) {
            one.fill(2000, 2001);
            counted += counted(one.collection) == null ? 0 : 1;
        }
        System.out.println("watched " + counted);
        ready(3);
    }
}
