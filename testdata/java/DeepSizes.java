import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.instrument.Instrumentation;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Creates objects of all kinds, each in a static field of {@link Zoo}, and measures them inside the JVM. Instrumentation gives shallow
 * sizes. Walks over fields and elements give deep sizes: {@code deep} includes shared values, {@code unshared} does not. Prints
 * {@code SIZE field shallow deep unshared} for each object, {@code SET ...} for all objects together, {@code STATICS shallow deep} for a
 * class object and all that its static fields hold, and {@code UNTOLD ...} for an interned string that a dump does not mark as interned.
 * Prints {@code FINAL field deep} and {@code FINALSTATICS deep} for walks that do not follow final fields, {@code TRANSIENT field deep}
 * and {@code BOTH field deep} for those that do not follow transient fields, or both. Then prints READY 1, and waits without changing
 * anything.
 */
public class DeepSizes {
    static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    static class Empty {}

    static class Mixed {
        boolean a = true;
        byte b = 1;
        char c = 'c';
        short d = 2;
        int e = 3;
        float f = 4;
        long g = 5;
        double h = 6;
        Object i = new Empty();
        int[] j = {1, 2, 3};
    }

    static class Child extends Mixed {
        byte k = 7;
        Object l = new Empty();
    }

    static class Grandchild extends Child {
        long m = 8;
        Mixed n = new Mixed();
        byte o = 9;
    }

    record Pair(Object left, int right) {}

    enum Colour {
        RED,
        GREEN {
            @Override
            int shade() {
                return 2;
            }
        },
        BLUE;

        final Map<String, Object> extra = new HashMap<>();

        int shade() {
            return 1;
        }
    }

    class Inner {
        int value = 1;
    }

    static class Node {
        Node next;
        Object value;
    }

    static class HasStatics {
        static Object one = new int[10];
        static final Object two = new Mixed();
        static String nothing;
        static Class<?> other = Mixed.class;
        static Object[] both = {one, two};
    }

    /** The objects that are measured. */
    static class Zoo {
        static Object empty = new Empty();
        static Object mixed = new Mixed();
        static Object child = new Child();
        static Object grandchild = new Grandchild();
        static Object inner = new DeepSizes().new Inner();
        static Object record = new Pair(new Pair("left", 1), 2);
        static Object plainEnum = Colour.RED;
        static Object enumWithBody = Colour.GREEN;
        static Object holdsEnum = new Pair(Colour.BLUE, 1);
        static Object lambda = (Supplier<Object>) () -> 1;
        static Object capturing = capture(new Mixed(), 12345, 6L);
        static Object latin = new String("caf\u00e9 au lait");
        static Object utf16 = new String("\u20ac uro");
        static Object constant = "a constant of the program";
        static Object holdsConstant = new Pair("a constant of the program", 1);
        static Object sameCharacters = new String("a constant of the program");
        static Object emptyString = new String("");
        static Object booleanTrue = Boolean.TRUE;
        static Object booleanFalse = Boolean.FALSE;
        static Object newBoolean = box(Boolean.class, boolean.class, true);
        static Object smallInteger = 127;
        static Object smallestInteger = -128;
        static Object largeInteger = 128;
        static Object largerInteger = 100_000;
        static Object newInteger = box(Integer.class, int.class, 5);
        static Object smallLong = 127L;
        static Object largeLong = 128L;
        static Object newLong = box(Long.class, long.class, 5L);
        static Object smallShort = (short) -128;
        static Object largeShort = (short) 128;
        static Object newShort = box(Short.class, short.class, (short) 5);
        static Object anyByte = (byte) -1;
        static Object newByte = box(Byte.class, byte.class, (byte) 5);
        static Object smallCharacter = 'a';
        static Object largeCharacter = '\u0080';
        static Object newCharacter = box(Character.class, char.class, 'a');
        static Object anyFloat = 1f;
        static Object anyDouble = 1d;
        static Object boxes = new Object[] {1, 1000, 1L, 1000L, 'a', true, (byte) 1, (short) 1, 1.0};
        static Object arrayList = fill(new ArrayList<>(), 13);
        static Object linkedList = fill(new LinkedList<>(), 1000);
        static Object arrayDeque = fill(new ArrayDeque<>(), 9);
        static Object hashSet = fill(new HashSet<>(), 100);
        static Object priorityQueue = fill(new PriorityQueue<>(), 10);
        static Object copyOnWrite = fill(new CopyOnWriteArrayList<>(), 5);
        static Object immutableList = List.of(1, 2, 3, 4);
        static Object immutableMap = Map.of("a", 1, "b", 2000);
        static Object immutableSet = Set.of("x");
        static Object hashMap = fill(new HashMap<>(), 200);
        static Object linkedHashMap = fill(new LinkedHashMap<>(), 20);
        static Object treeMap = fill(new TreeMap<>(), 30);
        static Object concurrentMap = fill(new ConcurrentHashMap<>(), 100);
        static Object identityMap = fill(new IdentityHashMap<>(), 10);
        static Object enumMap = new EnumMap<Colour, Object>(Map.of(Colour.RED, new Empty()));
        static Object collidingMap = collisions();
        static Object optional = Optional.of(new Mixed());
        static Object atomic = new AtomicReference<Object>(new int[3]);
        static Object bitSet = new BitSet(100);
        static Object decimal = new BigDecimal("12345678901234567890.123");
        static Object chain = chain(100_000, null);
        static Object cycle = cycle();
        static Object selfArray = selfArray();
        static Object diamond = diamond();
        static Object holdsClass = new Object[] {Mixed.class, int.class, String[].class, new Empty()};
        static Object soft = new SoftReference<Object>(new Mixed());
        static Object weak = new WeakReference<Object>(mixed);
        static Object phantom = new PhantomReference<Object>(mixed, new ReferenceQueue<>());
        static Object booleans = arrays(boolean.class);
        static Object bytes = arrays(byte.class);
        static Object chars = arrays(char.class);
        static Object shorts = arrays(short.class);
        static Object ints = arrays(int.class);
        static Object floats = arrays(float.class);
        static Object longs = arrays(long.class);
        static Object doubles = arrays(double.class);
        static Object objects = arrays(Object.class);
        static Object strings = arrays(String.class);
        static Object nested = new int[3][4][5];
        static Object grandchildren = new Grandchild[] {new Grandchild(), null, new Grandchild()};
    }

    /** Holds a string that {@code intern} interned. It is not a constant of a class, so a dump does not show that it is interned. */
    static class Untold {
        static Object interned = new StringBuilder("made at ").append("run time").toString().intern();
    }

    static Object capture(Object first, Integer second, long third) {
        return (Function<Object, Object>) x -> "" + x + first + second + third;
    }

    /** Returns a box that {@code valueOf} did not create, so that the box is not in the JDK's cache. */
    static Object box(Class<?> box, Class<?> primitive, Object value) {
        try {
            return box.getConstructor(primitive).newInstance(value);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    static Object fill(java.util.Collection<Object> collection, int count) {
        for (int i = 0; i < count; i++) {
            collection.add("element " + i);
        }
        return collection;
    }

    static Object fill(Map<Object, Object> map, int count) {
        for (int i = 0; i < count; i++) {
            map.put("key " + i, i % 2 == 0 ? (Object) i : new Empty());
        }
        return map;
    }

    /** Returns a map with so many keys of one hash code that the map stores them in a tree. */
    static Object collisions() {
        Map<Object, Object> map = new HashMap<>(128);
        String[] halves = {"Aa", "BB"};
        for (int i = 0; i < 32; i++) {
            StringBuilder key = new StringBuilder();
            for (int bit = 0; bit < 5; bit++) {
                key.append(halves[i >> bit & 1]);
            }
            map.put(key.toString(), i * 1000);
        }
        return map;
    }

    static Node chain(int length, Node last) {
        Node first = last;
        for (int i = 0; i < length; i++) {
            Node node = new Node();
            node.next = first;
            first = node;
        }
        return first;
    }

    static Object cycle() {
        Node last = new Node();
        last.next = chain(5, last);
        last.value = last;
        return last.next;
    }

    static Object selfArray() {
        Object[] array = new Object[2];
        array[0] = array;
        array[1] = new Object[] {array};
        return array;
    }

    static Object diamond() {
        Object shared = new long[100];
        return new Object[] {new Pair(shared, 1), new Pair(shared, 2), shared};
    }

    /** Returns arrays of the lengths 0 to 35, so that their sizes cross several alignment boundaries. */
    static Object arrays(Class<?> element) {
        Object[] all = new Object[36];
        for (int length = 0; length < all.length; length++) {
            all[length] = Array.newInstance(element, length);
        }
        return all;
    }

    static boolean isShared(Object object) {
        if (object instanceof Enum) {
            return true;
        }
        if (object instanceof String text) {
            // Intern a copy, because a call of intern on the string itself would intern this string.
            return new String(text).intern() == text;
        }
        if (object instanceof Boolean) {
            return object == Boolean.TRUE || object == Boolean.FALSE;
        }
        if (object instanceof Integer box) {
            return object == Integer.valueOf(box);
        }
        if (object instanceof Short box) {
            return object == Short.valueOf(box);
        }
        if (object instanceof Byte box) {
            return object == Byte.valueOf(box);
        }
        if (object instanceof Long box) {
            return object == Long.valueOf(box);
        }
        return object instanceof Character box && object == Character.valueOf(box);
    }

    /** A walk over all objects that some objects reach through fields and elements. */
    static final class Walk {
        final boolean skipShared;
        /** Fields with one of these modifiers are not followed. */
        final int skipped;
        final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        final ArrayDeque<Object> left = new ArrayDeque<>();
        static final Map<Class<?>, List<Field>> fields = new HashMap<>();

        Walk(boolean skipShared, int skipped) {
            this.skipShared = skipShared;
            this.skipped = skipped;
        }

        void reach(Object object) {
            boolean counts = object != null && !(object instanceof Class);
            if (counts && !(skipShared && isShared(object)) && seen.add(object)) {
                left.add(object);
            }
        }

        long bytes() throws IllegalAccessException {
            long bytes = 0;
            while (!left.isEmpty()) {
                Object object = left.poll();
                bytes += instrumentation.getObjectSize(object);
                if (object instanceof Object[] array) {
                    for (Object element : array) {
                        reach(element);
                    }
                    continue;
                }
                for (Field field : fieldsOf(object.getClass())) {
                    boolean referent =
                            field.getDeclaringClass() == Reference.class
                                    && field.getName().equals("referent")
                                    && !(object instanceof SoftReference);
                    boolean skips = (field.getModifiers() & skipped) != 0;
                    if (!referent && !skips) {
                        reach(field.get(object));
                    }
                }
            }
            return bytes;
        }

        static List<Field> fieldsOf(Class<?> type) {
            List<Field> known = fields.get(type);
            if (known == null) {
                known = new ArrayList<>();
                for (Class<?> up = type; up != null; up = up.getSuperclass()) {
                    for (Field field : up.getDeclaredFields()) {
                        boolean plain = !Modifier.isStatic(field.getModifiers());
                        if (plain && !field.getType().isPrimitive()) {
                            field.setAccessible(true);
                            known.add(field);
                        }
                    }
                }
                fields.put(type, known);
            }
            return known;
        }
    }

    static long deep(boolean skipShared, Object... starts) throws IllegalAccessException {
        return walk(new Walk(skipShared, 0), starts);
    }

    static long without(int modifiers, Object... starts) throws IllegalAccessException {
        return walk(new Walk(false, modifiers), starts);
    }

    static long walk(Walk walk, Object... starts) throws IllegalAccessException {
        for (Object start : starts) {
            walk.reach(start);
        }
        return walk.bytes();
    }

    public static void main(String[] arguments) throws Exception {
        Module base = Object.class.getModule();
        Set<Module> here = Set.of(DeepSizes.class.getModule());
        Map<String, Set<Module>> open = new HashMap<>();
        for (String name : base.getPackages()) {
            open.put(name, here);
        }
        instrumentation.redefineModule(base, Set.of(), Map.of(), open, Set.of(), Map.of());
        StringBuilder report = new StringBuilder();
        Set<Object> all = Collections.newSetFromMap(new IdentityHashMap<>());
        long shallow = 0;
        for (Field field : Zoo.class.getDeclaredFields()) {
            Object object = field.get(null);
            long own = instrumentation.getObjectSize(object);
            report.append("SIZE ").append(field.getName()).append(' ').append(own);
            report.append(' ').append(deep(false, object));
            report.append(' ').append(deep(true, object)).append('\n');
            report.append("FINAL ").append(field.getName());
            report.append(' ').append(without(Modifier.FINAL, object)).append('\n');
            report.append("TRANSIENT ").append(field.getName());
            report.append(' ').append(without(Modifier.TRANSIENT, object)).append('\n');
            report.append("BOTH ").append(field.getName()).append(' ');
            report.append(without(Modifier.FINAL | Modifier.TRANSIENT, object)).append('\n');
            shallow += all.add(object) ? own : 0;
        }
        report.append("SET ").append(shallow);
        report.append(' ').append(deep(false, all.toArray()));
        report.append(' ').append(deep(true, all.toArray())).append('\n');
        List<Object> statics = new ArrayList<>();
        List<Object> variable = new ArrayList<>();
        for (Field field : HasStatics.class.getDeclaredFields()) {
            statics.add(field.get(null));
            if (!Modifier.isFinal(field.getModifiers())) {
                variable.add(field.get(null));
            }
        }
        long mirror = instrumentation.getObjectSize(HasStatics.class);
        report.append("STATICS ").append(mirror);
        report.append(' ').append(mirror + deep(false, statics.toArray())).append('\n');
        report.append("FINALSTATICS ");
        report.append(mirror + without(Modifier.FINAL, variable.toArray())).append('\n');
        Object untold = Untold.interned;
        report.append("UNTOLD ").append(instrumentation.getObjectSize(untold));
        report.append(' ').append(deep(false, untold));
        report.append(' ').append(deep(true, untold)).append('\n');
        System.out.print(report);
        System.out.println("READY 1");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        Reference.reachabilityFence(all);
    }
}
