import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.Set;
import java.util.Stack;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.Vector;
import java.util.WeakHashMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Keeps collections of every kind, and reads through their public methods what they contain. Prints a line for each: HOLDS, field, kind,
 * size and elements, separated by tabs.
 */
public class Contents {
    enum Metal { IRON, GOLD, LEAD }

    /** A key whose hash code is always the same, so that hash buckets become trees. */
    record Crowded(String name) implements Comparable<Crowded> {
        @Override
        public int hashCode() {
            return 7;
        }

        @Override
        public int compareTo(Crowded other) {
            return name.compareTo(other.name);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    /** A list with a field that has the same name as a field of its superclass. */
    static class OwnList extends ArrayList<String> {
        int size = 77;
    }

    static final int MANY = 100;

    static List<String> arrayList = new ArrayList<>(Arrays.asList("a", null, "caf\u00e9", "\u20ac"));
    static List<String> arrayListEmpty = new ArrayList<>();
    static List<Integer> arrayListMany = new ArrayList<>(numbers());
    static List<String> arrayListOwn = fill(new OwnList(), 3);
    static List<Integer> subList = arrayListMany.subList(10, 14);
    static List<Integer> subListOfSubList = subList.subList(1, 3);
    static List<String> vector = fill(new Vector<>(), 3);
    static List<String> stack = fill(new Stack<>(), 12);
    static List<String> linkedList = fill(new LinkedList<>(), MANY);
    static List<String> linkedListEmpty = new LinkedList<>();
    static List<String> asList = Arrays.asList("x", "y", null);
    static Collection<String> arrayDeque = wrapped(new ArrayDeque<>(8));
    static Collection<String> arrayDequeEmpty = new ArrayDeque<>();
    static List<String> listOf0 = List.of();
    static List<String> listOf1 = List.of("one");
    static List<String> listOf2 = List.of("one", "two");
    static List<String> listOf5 = List.of("1", "2", "3", "4", "5");
    static List<String> listOfSub = listOf5.subList(1, 4);
    static List<String> emptyList = Collections.emptyList();
    static List<String> singletonList = Collections.singletonList("only");
    static List<String> unmodifiableList = Collections.unmodifiableList(arrayList);
    static List<String> synchronizedList = Collections.synchronizedList(linkedList);
    static List<String> copyOnWriteList = fill(new CopyOnWriteArrayList<>(), 4);

    static Set<String> hashSet = fill(new HashSet<>(), MANY);
    static Set<String> hashSetEmpty = new HashSet<>();
    static Set<String> linkedHashSet = fill(new LinkedHashSet<>(), MANY);
    static Set<String> treeSet = fill(new TreeSet<>(), MANY);
    static Set<String> setOf1 = Set.of("one");
    static Set<String> setOf2 = Set.of("one", "two");
    static Set<String> setOf5 = Set.of("1", "2", "3", "4", "5");
    static Set<String> emptySet = Collections.emptySet();
    static Set<String> singletonSet = Collections.singleton("only");
    static Set<String> fromMap = fill(Collections.newSetFromMap(new ConcurrentHashMap<>()), 20);
    static Set<String> keySet = fill(ConcurrentHashMap.newKeySet(), 20);
    static Set<String> skipListSet = fill(new ConcurrentSkipListSet<>(), MANY);
    static Set<String> copyOnWriteSet = fill(new CopyOnWriteArraySet<>(), 4);
    static Set<Metal> enumSet = EnumSet.of(Metal.IRON, Metal.LEAD);

    static Map<String, Integer> hashMap = put(new HashMap<>(), MANY);
    static Map<String, Integer> hashMapEmpty = new HashMap<>();
    static Map<String, Integer> hashMapNull = withNull(new HashMap<>());
    static Map<Crowded, Integer> hashMapTree = crowd(new HashMap<>());
    static Map<String, Integer> linkedHashMap = put(new LinkedHashMap<>(), MANY);
    static Map<Crowded, Integer> linkedHashMapTree = crowd(new LinkedHashMap<>());
    static Map<String, Integer> treeMap = put(new TreeMap<>(), MANY);
    static Map<String, Integer> treeMapEmpty = new TreeMap<>();
    static Map<String, Integer> concurrentMap = put(new ConcurrentHashMap<>(), MANY);
    static Map<String, Integer> concurrentMapEmpty = new ConcurrentHashMap<>();
    static Map<Crowded, Integer> concurrentMapTree = crowd(new ConcurrentHashMap<>());
    static Map<String, Integer> skipListMap = put(new ConcurrentSkipListMap<>(), MANY);
    static Map<String, Integer> hashtable = put(new Hashtable<>(), 20);
    static Map<Object, Object> properties = properties();
    /** A weak map whose keys another map keeps alive. */
    static Map<String, Integer> weakMap = new WeakHashMap<>(concurrentMap);
    static Map<String, Integer> identityMap = withNull(new IdentityHashMap<>());
    static Map<Metal, String> enumMap = new EnumMap<>(Map.of(Metal.LEAD, "heavy", Metal.GOLD, "dear"));
    static Map<String, Integer> mapOf0 = Map.of();
    static Map<String, Integer> mapOf1 = Map.of("one", 1);
    static Map<String, Integer> mapOf3 = Map.of("one", 1, "two", 2, "three", 3);
    static Map<String, Integer> emptyMap = Collections.emptyMap();
    static Map<String, Integer> singletonMap = Collections.singletonMap("only", 1);
    static Map<String, Integer> unmodifiableMap = Collections.unmodifiableMap(linkedHashMap);
    static Map<String, Integer> synchronizedMap = Collections.synchronizedMap(treeMap);

    static Collection<String> priorityQueue = new PriorityQueue<>(List.of("c", "a", "b"));
    static Collection<String> priorityBlockingQueue = new PriorityBlockingQueue<>(List.of("c", "a", "b"));
    static Collection<String> concurrentQueue = polled(new ConcurrentLinkedQueue<>());
    static Collection<String> concurrentDeque = fill(new ConcurrentLinkedDeque<>(), 5);
    static Collection<String> blockingQueue = polled(new LinkedBlockingQueue<>());
    static Collection<String> blockingDeque = fill(new LinkedBlockingDeque<>(50), 5);
    static Collection<String> arrayBlockingQueue = wrapped(new ArrayBlockingQueue<>(8));

    static Optional<String> optional = Optional.of("there");
    static Optional<String> optionalEmpty = Optional.empty();
    static OptionalInt optionalInt = OptionalInt.of(-5);
    static OptionalLong optionalLong = OptionalLong.empty();
    static AtomicInteger atomicInteger = new AtomicInteger(-7);
    static AtomicLong atomicLong = new AtomicLong(1L << 40);
    static AtomicBoolean atomicBoolean = new AtomicBoolean(true);
    static AtomicReference<String> atomicReference = new AtomicReference<>("held");
    static LongAdder longAdder = new LongAdder();
    static AtomicIntegerArray atomicInts = new AtomicIntegerArray(new int[] {3, 1, 2});
    static AtomicReferenceArray<String> atomicReferences = new AtomicReferenceArray<>(new String[] {"p", null});

    static ByteBuffer byteBuffer = ByteBuffer.wrap(new byte[] {1, 2, 3, 4, 5, 6}, 1, 3);
    static ByteBuffer byteSlice = ((ByteBuffer) ByteBuffer.wrap(new byte[] {1, 2, 3, 4, 5, 6}).position(2)).slice();
    static CharBuffer charBuffer = CharBuffer.wrap(new char[] {'x', 'y', 'z'});
    static StringBuilder builder = new StringBuilder("caf\u00e9 and more");
    static StringBuilder builderWide = new StringBuilder(100).append("5 \u20ac \ud83d\ude00");
    static StringBuffer buffer = new StringBuffer().append("plain");

    static List<Integer> numbers() {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            numbers.add(1000 + i);
        }
        return numbers;
    }

    static <C extends Collection<String>> C fill(C collection, int count) {
        for (int i = 0; i < count; i++) {
            collection.add("e" + i);
        }
        return collection;
    }

    static <C extends java.util.Queue<String>> C polled(C queue) {
        fill(queue, 12);
        for (int i = 0; i < 3; i++) {
            queue.poll();
        }
        return queue;
    }

    /** Adds and removes elements until the queue's content wraps around the end of its array. */
    static <C extends java.util.Queue<String>> C wrapped(C queue) {
        fill(queue, 6);
        for (int i = 0; i < 5; i++) {
            queue.poll();
        }
        return fill(queue, 5);
    }

    static <M extends Map<String, Integer>> M put(M map, int count) {
        for (int i = 0; i < count; i++) {
            map.put("k" + i, i * 1000);
        }
        return map;
    }

    static <M extends Map<String, Integer>> M withNull(M map) {
        map.put(null, 5);
        map.put("null", null);
        return map;
    }

    static <M extends Map<Crowded, Integer>> M crowd(M map) {
        for (int i = 0; i < MANY; i++) {
            map.put(new Crowded("c" + i), i * 1000);
        }
        return map;
    }

    static Map<Object, Object> properties() {
        Properties properties = new Properties();
        properties.setProperty("one", "1");
        properties.setProperty("two", "2");
        return properties;
    }

    /** Adds from several threads at once, so that the adder spreads its value over several cells. */
    static void count(LongAdder adder) throws InterruptedException {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int k = 0; k < 10_000; k++) {
                    adder.increment();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void say(String field, String kind, long size, Iterable<?> elements) {
        StringJoiner text = new StringJoiner("|");
        for (Object element : elements) {
            text.add(String.valueOf(element));
        }
        System.out.println("HOLDS\t" + field + "\t" + kind + "\t" + size + "\t" + text);
    }

    static void say(String field, Object held) {
        if (held instanceof Map<?, ?> map) {
            say(field, "map", map.size(), map.entrySet());
        } else if (held instanceof Set<?> set) {
            say(field, "set", set.size(), set);
        } else if (held instanceof PriorityQueue<?> || held instanceof PriorityBlockingQueue<?>) {
            Collection<?> queue = (Collection<?>) held;
            say(field, "list", queue.size(), Arrays.asList(queue.toArray()));
        } else if (held instanceof Collection<?> list) {
            say(field, "list", list.size(), list);
        } else if (held instanceof Optional<?> o) {
            say(field, "value", o.isPresent() ? 1 : 0, o.map(List::<Object>of).orElse(List.of()));
        } else if (held instanceof OptionalInt o) {
            say(field, "value", 1, List.of(o.getAsInt()));
        } else if (held instanceof OptionalLong o) {
            say(field, "value", o.isPresent() ? 1 : 0, List.of());
        } else if (held instanceof AtomicIntegerArray a) {
            List<Integer> values = new ArrayList<>();
            for (int i = 0; i < a.length(); i++) {
                values.add(a.get(i));
            }
            say(field, "list", a.length(), values);
        } else if (held instanceof AtomicReferenceArray<?> a) {
            List<Object> values = new ArrayList<>();
            for (int i = 0; i < a.length(); i++) {
                values.add(a.get(i));
            }
            say(field, "list", a.length(), values);
        } else if (held instanceof ByteBuffer b) {
            List<Byte> values = new ArrayList<>();
            for (int i = b.position(); i < b.limit(); i++) {
                values.add(b.get(i));
            }
            say(field, "buffer", b.remaining(), values);
        } else if (held instanceof CharBuffer b) {
            List<Integer> values = new ArrayList<>();
            for (int i = 0; i < b.remaining(); i++) {
                values.add((int) b.charAt(i));
            }
            say(field, "buffer", b.remaining(), values);
        } else if (held instanceof CharSequence text) {
            say(field, "text", text.length(), List.of(text));
        } else {
            say(field, "value", 1, List.of(held));
        }
    }

    public static void main(String[] args) throws Exception {
        count(longAdder);
        for (Field field : Contents.class.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive() && !field.isSynthetic()) {
                say(field.getName(), field.get(null));
            }
        }
        System.out.println("READY 1");
        System.in.read();
    }
}
