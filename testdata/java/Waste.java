import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.instrument.Instrumentation;
import java.lang.ref.Reference;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Hashtable;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntFunction;

/**
 * Wastes memory in every known way, each in a static field of {@link Held}, and computes the bytes that could be saved. Sizes come from
 * Instrumentation. The smallest possible length of a hash table is found by trying. Prints {@code WASTE kind field objects bytes} for each
 * field. Then prints READY 1, and waits without changing anything.
 */
public class Waste {
    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    /** The objects that waste memory. */
    static class Held {
        static Object strings;
        static Object wideStrings;
        static Object sharedStrings;
        static Object arrays;
        static Object integers;
        static Object longs;
        static Object characters;
        static Object doubles;
        static Object boxedLists;
        static Object boxedMaps;
        static Object boxedChains;
        static Object boxedArrays;
        static Object emptyLists;
        static Object untouchedLists;
        static Object emptyMaps;
        static Object emptyChains;
        static Object emptyTrees;
        static Object emptyBuilders;
        static Object sparseLists;
        static Object sparseVectors;
        static Object sparseQueues;
        static Object sparseDeques;
        static Object sparseMaps;
        static Object sparseLinkedMaps;
        static Object sparseConcurrentMaps;
        static Object sparseTables;
        static Object sparseIdentityMaps;
        static Object sparseWeakMaps;
        static Object sparseBuilders;
        static Object sparseWideBuilders;
        static Object zeros;
        static Object nulls;
        static Object longArrays;
        static Object longObjectArrays;
    }

    static final StringBuilder report = new StringBuilder();
    /** Elements that differ from all other objects. */
    static final Object[] elements = new Object[1000];

    static long size(Object object) {
        return instrumentation.getObjectSize(object);
    }

    static Object field(Object object, String name) throws ReflectiveOperationException {
        for (Class<?> type = object.getClass(); ; type = type.getSuperclass()) {
            try {
                Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field.get(object);
            } catch (NoSuchFieldException e) {
                if (type == Object.class) {
                    throw e;
                }
            }
        }
    }

    /** Returns the size that the array would have with another length. */
    static long sizeWith(Object array, int length) {
        return size(Array.newInstance(array.getClass().getComponentType(), length));
    }

    static void keep(String kind, String name, Object what, long objects, long bytes)
            throws ReflectiveOperationException {
        Held.class.getDeclaredField(name).set(null, what);
        report.append("WASTE ").append(kind).append(' ').append(name);
        report.append(' ').append(objects).append(' ').append(bytes).append('\n');
    }

    /** Keeps {@code count} strings with only {@code different} different contents. */
    static void strings(String name, String start, int count, int different)
            throws ReflectiveOperationException {
        String[] strings = new String[count];
        long bytes = 0;
        for (int i = 0; i < count; i++) {
            strings[i] = new StringBuilder(start).append(i % different).toString();
            if (i >= different) {
                bytes += size(strings[i]) + size(field(strings[i], "value"));
            }
        }
        keep("duplicate_strings", name, strings, count - different, bytes);
    }

    /** Keeps equal strings that all share one array. */
    static void sharedStrings() throws ReflectiveOperationException {
        String first = new StringBuilder("shared by many").append(1).toString();
        String[] strings = new String[100];
        for (int i = 0; i < 100; i++) {
            strings[i] = new String(first);
        }
        keep("duplicate_strings", "sharedStrings", strings, 99, 99 * size(first));
    }

    static void boxes(String name, int count, int different, IntFunction<Object> box)
            throws ReflectiveOperationException {
        Object[] boxes = new Object[count];
        for (int i = 0; i < count; i++) {
            boxes[i] = box.apply(i % different);
        }
        keep("duplicate_boxes", name, boxes, count - different, (count - different) * size(boxes[0]));
    }

    /** Keeps boxes with different values in an object that could store the values without boxes. */
    static void boxed(String name, Object what, int width, Object... boxes)
            throws ReflectiveOperationException {
        long reference = (size(new Object[1024]) - size(new Object[0])) / 1024;
        long bytes = 0;
        for (Object box : boxes) {
            bytes += size(box) - Math.max(0, width - reference);
        }
        keep("boxed_values", name, what, boxes.length, bytes);
    }

    static Object[] made(int count, IntFunction<Object> make) {
        Object[] all = new Object[count];
        Arrays.setAll(all, make);
        return all;
    }

    /** Keeps empty collections. Each wastes its own size and the size of its array. */
    static void empty(String name, String array, Object... things) throws ReflectiveOperationException {
        long bytes = 0;
        for (Object thing : things) {
            bytes += size(thing);
            Object within = array == null ? null : field(thing, array);
            if (within != null && Array.getLength(within) > 0) {
                bytes += size(within);
            }
        }
        keep("empty_collections", name, things, things.length, bytes);
    }

    /** Keeps collections whose arrays are longer than needed. */
    static void sparse(String name, String array, int need, Object... things)
            throws ReflectiveOperationException {
        long bytes = 0;
        for (Object thing : things) {
            Object within = field(thing, array);
            bytes += size(within) - sizeWith(within, need);
        }
        keep("sparse_collections", name, things, things.length, bytes);
    }

    static <T extends Collection<Object>> T add(T collection, int count) {
        collection.addAll(Arrays.asList(elements).subList(0, count));
        return collection;
    }

    static <T extends Map<Object, Object>> T put(T map, int count) {
        for (int i = 0; i < count; i++) {
            map.put(elements[i], elements[i]);
        }
        return map;
    }

    /** Returns the length of the shortest hash table for {@code count} entries, over all initial capacities below 100. */
    static int shortest(int count, IntFunction<? extends Map<Object, Object>> map)
            throws ReflectiveOperationException {
        int least = Integer.MAX_VALUE;
        for (int capacity = 0; capacity < 100; capacity++) {
            Object table = field(put(map.apply(capacity), count), "table");
            least = Math.min(least, Array.getLength(table));
        }
        return least;
    }

    static void sparseMaps(String name, int count, IntFunction<? extends Map<Object, Object>> map)
            throws ReflectiveOperationException {
        int need = shortest(count, map);
        sparse(name, "table", need, put(map.apply(500), count), put(map.apply(100), count));
    }

    public static void main(String[] arguments) throws Exception {
        Module base = Object.class.getModule();
        Set<Module> here = Set.of(Waste.class.getModule());
        Map<String, Set<Module>> open = new HashMap<>();
        for (String name : base.getPackages()) {
            open.put(name, here);
        }
        instrumentation.redefineModule(base, Set.of(), Map.of(), open, Set.of(), Map.of());
        build();
        System.out.print(report);
        System.out.println("READY 1");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        Reference.reachabilityFence(elements);
    }

    /** This is a separate method, so that after its return no local variable holds the objects. */
    static void build() throws ReflectiveOperationException {
        Arrays.setAll(elements, i -> new Object());

        strings("strings", "one of many texts, number ", 1000, 50);
        strings("wideStrings", "\u20ac ", 200, 20);
        sharedStrings();
        int[][] arrays = new int[300][];
        Arrays.setAll(arrays, i -> new int[] {7, 77, 777, i % 30, 7777});
        keep("duplicate_arrays", "arrays", arrays, 270, 270 * size(arrays[0]));
        boxes("integers", 500, 20, i -> Integer.valueOf(1_000_000 + i));
        boxes("longs", 400, 3, i -> Long.valueOf(1_000_000_000_000L + i));
        boxes("characters", 50, 5, i -> Character.valueOf((char) (0x4e00 + i)));
        boxes("doubles", 90, 30, i -> Double.valueOf(0.125 + i));

        Object[] boxes = made(300, i -> Integer.valueOf(2_000_000 + i));
        boxed("boxedLists", new ArrayList<>(Arrays.asList(boxes)), 4, boxes);
        boxes = made(200, i -> Long.valueOf(5_000_000_000_000L + i));
        Map<Object, Object> map = new HashMap<>();
        for (int i = 0; i < 200; i++) {
            map.put(boxes[i], elements[i]);
        }
        boxed("boxedMaps", map, 8, boxes);
        boxes = made(70, i -> Double.valueOf(1000.5 + i));
        boxed("boxedChains", new LinkedList<>(Arrays.asList(boxes)), 8, boxes);
        boxes = made(40, i -> Character.valueOf((char) (0x5e00 + i)));
        boxed("boxedArrays", Arrays.copyOf(boxes, boxes.length, Character[].class), 2, boxes);

        ArrayList<Object> cleared = add(new ArrayList<>(), 20);
        cleared.clear();
        empty("emptyLists", "elementData", new ArrayList<>(16), cleared);
        empty("untouchedLists", "elementData", new ArrayList<>(), new ArrayList<>(), new ArrayList<>(0));
        Map<Object, Object> removed = put(new HashMap<>(), 5);
        removed.clear();
        empty("emptyMaps", "table", new HashMap<>(), removed, new Hashtable<>(), new IdentityHashMap<>());
        empty("emptyChains", null, new LinkedList<>(), new LinkedList<>());
        empty("emptyTrees", null, new TreeMap<>());
        empty("emptyBuilders", "value", new StringBuilder(), new StringBuffer(100));

        sparse("sparseLists", "elementData", 10, add(new ArrayList<>(100), 10), add(new ArrayList<>(20), 10));
        sparse("sparseVectors", "elementData", 1, add(new Vector<>(), 1));
        // A comparator, because the elements are not comparable.
        PriorityQueue<Object> queue = new PriorityQueue<>(50, (a, b) -> 0);
        sparse("sparseQueues", "queue", 4, add(queue, 4));
        ArrayDeque<Object> deque = add(new ArrayDeque<>(100), 60);
        for (int i = 0; i < 55; i++) {
            deque.removeFirst();
        }
        for (int i = 0; i < 50; i++) {
            deque.addLast(elements[i]);
            deque.removeFirst();
        }
        sparse("sparseDeques", "elements", 6, deque);
        sparseMaps("sparseMaps", 3, HashMap::new);
        sparseMaps("sparseLinkedMaps", 12, LinkedHashMap::new);
        sparseMaps("sparseConcurrentMaps", 3, ConcurrentHashMap::new);
        sparseMaps("sparseTables", 7, Hashtable::new);
        sparseMaps("sparseIdentityMaps", 5, IdentityHashMap::new);
        sparseMaps("sparseWeakMaps", 2, WeakHashMap::new);
        StringBuilder text = new StringBuilder(1000).append("some text in a builder");
        sparse("sparseBuilders", "value", 22, text);
        StringBuilder wide = new StringBuilder(1000).append("\u20ac and more text");
        sparse("sparseWideBuilders", "value", 2 * 15, wide);

        Object[] zeros = new Object[10];
        long bytes = 0;
        for (int i = 0; i < 10; i++) {
            zeros[i] = i % 2 == 0 ? new byte[1000 + i] : new long[4 + i];
            bytes += size(zeros[i]);
        }
        keep("zero_arrays", "zeros", zeros, 10, bytes);
        Object[][] nulls = {new Object[64], new String[32]};
        keep("zero_arrays", "nulls", nulls, 2, size(nulls[0]) + size(nulls[1]));
        Object[] filled = new Object[8];
        bytes = 0;
        for (int i = 0; i < 8; i++) {
            short[] array = new short[100 + i];
            array[10 + i] = 7;
            filled[i] = array;
            bytes += size(array) - size(new short[11 + i]);
        }
        keep("long_arrays", "longArrays", filled, 8, bytes);
        Object[] few = new Object[100];
        few[2] = elements[0];
        keep("long_arrays", "longObjectArrays", new Object[][] {few}, 1, size(few) - size(new Object[3]));
    }
}
