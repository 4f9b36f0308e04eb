import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.List;
import java.util.PriorityQueue;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Flow;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/**
 * Creates objects with many layouts: every mix of field types, inheritance, arrays of every type and length, classes with one instance and
 * classes with many. Changes nothing while it waits after each READY, so that a dump and the JVM's own histogram can be compared byte for
 * byte.
 */
public class LayoutZoo {
    // Classes written by hand: usual ones, and special cases in which layouts differ between JVMs.

    static class Empty {}

    static class EmptyChild extends Empty {}

    static class OneBoolean {
        boolean flag = true;
    }

    static class OneByte {
        byte value = 1;
    }

    static class OneChar {
        char value = 'x';
    }

    static class OneShort {
        short value = 2;
    }

    static class OneInt {
        int value = 3;
    }

    static class OneFloat {
        float value = 4f;
    }

    static class OneLong {
        long value = 5;
    }

    static class OneDouble {
        double value = 6;
    }

    static class OneReference {
        Object value = "seven";
    }

    /** The first of three classes with a byte, a long and a byte field: does the JVM fill the gaps in superclasses? */
    static class Base {
        byte a = 1;
    }

    static class Middle extends Base {
        long b = 2;
    }

    static class Leaf extends Middle {
        byte c = 3;
        Object d = "leaf";
    }

    static class LeafOfLeaf extends Leaf {
        int e = 4;
        short f = 5;
    }

    static class WideBase {
        long a = 1;
        int b = 2;
    }

    static class WideLeaf extends WideBase {
        int c = 3;
    }

    static class WideReferences extends WideBase {
        Object c = "c";
        Object d = "d";
        byte e = 5;
    }

    class Inner {
        int value = 1;
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

        int shade() {
            return 1;
        }
    }

    static class MyList extends ArrayList<Object> {
        byte extra = 1;
    }

    static class MyWeak extends WeakReference<Object> {
        long key = 1;

        MyWeak(Object referent) {
            super(referent);
        }
    }

    static class MySoft extends SoftReference<Object> {
        byte mark = 1;

        MySoft(Object referent) {
            super(referent);
        }
    }

    static class MyThread extends Thread {
        long ticket = 1;
        byte mark = 2;
    }

    static class MyException extends Exception {
        int code = 1;
    }

    static class MyLoader extends ClassLoader {
        byte mark = 1;

        MyLoader() {
            super(LayoutZoo.class.getClassLoader());
        }

        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    static class Finalizable {
        int value = 1;

        @Override
        @Deprecated
        @SuppressWarnings("removal")
        protected void finalize() {
            value = 0;
        }
    }

    static final List<Object> animals = new ArrayList<>();

    static void keep(int count, Supplier<?> supplier) {
        for (int i = 0; i < count; i++) {
            animals.add(supplier.get());
        }
    }

    static void handWritten() {
        LayoutZoo zoo = new LayoutZoo();
        keep(50, Empty::new);
        keep(1, EmptyChild::new);
        keep(50, OneBoolean::new);
        keep(50, OneByte::new);
        keep(3, OneChar::new);
        keep(1, OneShort::new);
        keep(50, OneInt::new);
        keep(2, OneFloat::new);
        keep(50, OneLong::new);
        keep(1, OneDouble::new);
        keep(50, OneReference::new);
        keep(20, Base::new);
        keep(20, Middle::new);
        keep(20, Leaf::new);
        keep(1, LeafOfLeaf::new);
        keep(20, WideBase::new);
        keep(20, WideLeaf::new);
        keep(1, WideReferences::new);
        keep(20, () -> zoo.new Inner());
        keep(20, () -> new Pair("left", 1));
        keep(5, MyList::new);
        keep(5, () -> new MyWeak(zoo));
        keep(5, () -> new MySoft(zoo));
        keep(2, MyThread::new);
        keep(5, MyException::new);
        keep(5, Finalizable::new);
        for (int i = 0; i < 5; i++) {
            int captured = i;
            animals.add((Supplier<Object>) () -> captured + "" + zoo);
        }
    }

    static void fromTheLibrary() {
        keep(1, () -> new EnumMap<Colour, String>(Colour.class));
        keep(3, () -> new BigDecimal("3.14159"));
        keep(3, () -> new BigInteger("123456789012345678901234567890"));
        keep(1, UUID::randomUUID);
        keep(1, Instant::now);
        keep(1, BitSet::new);
        keep(2, () -> ByteBuffer.allocate(10));
        keep(2, () -> ByteBuffer.allocateDirect(10));
        keep(1, ReentrantReadWriteLock::new);
        keep(1, () -> new PriorityQueue<>(List.of(3, 1, 2)));
        keep(1, () -> new ArrayDeque<>(List.of(1, 2, 3)));
        keep(1, () -> new CopyOnWriteArrayList<>(List.of(1, 2)));
        keep(1, () -> new LinkedBlockingQueue<>(List.of(1, 2)));
        keep(1, LongAdder::new);
        ConcurrentHashMap<Object, Object> map = new ConcurrentHashMap<>();
        ConcurrentSkipListMap<Integer, Object> list = new ConcurrentSkipListMap<>();
        for (int i = 0; i < 100; i++) {
            map.put(i * 1000, "value" + i);
            list.put(i * 1000, new int[i % 3]);
        }
        animals.add(map);
        animals.add(list);
    }

    static void arrays() {
        Class<?>[] elements = {
            boolean.class,
            byte.class,
            char.class,
            short.class,
            int.class,
            float.class,
            long.class,
            double.class,
            Object.class,
            String.class,
            Pair.class,
            int[].class,
            String[][].class,
        };
        for (Class<?> element : elements) {
            for (int length = 0; length <= 40; length++) {
                animals.add(Array.newInstance(element, length));
            }
        }
        // These arrays are larger than the smallest region of G1, so they are humongous objects.
        animals.add(new byte[3_000_001]);
        animals.add(new Object[300_001]);
    }

    // Generated classes: every mix of field counts, in a class of its own and in a subclass of a class with another mix.

    private static final String[] DESCRIPTORS = {"J", "I", "S", "B", "Ljava/lang/Object;"};

    static byte[] classFile(String name, String superName, int[] counts) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        int fields = 0;
        for (int count : counts) {
            fields += count;
        }
        out.writeInt(0xcafebabe);
        out.writeInt(52);
        // The constant pool: the constants 1 to 9 in the order below, then the descriptors, then one name for each field.
        out.writeShort(10 + DESCRIPTORS.length + fields);
        utf8(out, name);
        reference(out, 7, 1);
        utf8(out, superName);
        reference(out, 7, 3);
        utf8(out, "<init>");
        utf8(out, "()V");
        utf8(out, "Code");
        out.writeByte(12);
        out.writeShort(5);
        out.writeShort(6);
        out.writeByte(10);
        out.writeShort(4);
        out.writeShort(8);
        for (String descriptor : DESCRIPTORS) {
            utf8(out, descriptor);
        }
        for (int i = 0; i < fields; i++) {
            utf8(out, "field" + i);
        }
        out.writeShort(0x21);
        out.writeShort(2);
        out.writeShort(4);
        out.writeShort(0);
        out.writeShort(fields);
        int field = 0;
        for (int type = 0; type < counts.length; type++) {
            for (int i = 0; i < counts[type]; i++) {
                out.writeShort(1);
                out.writeShort(10 + DESCRIPTORS.length + field++);
                out.writeShort(10 + type);
                out.writeShort(0);
            }
        }
        out.writeShort(1);
        out.writeShort(1);
        out.writeShort(5);
        out.writeShort(6);
        out.writeShort(1);
        out.writeShort(7);
        out.writeInt(17);
        out.writeShort(1);
        out.writeShort(1);
        out.writeInt(5);
        out.write(new byte[] {0x2a, (byte) 0xb7, 0, 9, (byte) 0xb1});
        out.writeInt(0);
        out.writeShort(0);
        return bytes.toByteArray();
    }

    private static void utf8(DataOutputStream out, String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
    }

    private static void reference(DataOutputStream out, int tag, int index) throws IOException {
        out.writeByte(tag);
        out.writeShort(index);
    }

    static void generated() throws Exception {
        MyLoader loader = new MyLoader();
        List<int[]> mixes = new ArrayList<>();
        for (int longs = 0; longs <= 2; longs++) {
            for (int ints = 0; ints <= 2; ints++) {
                for (int shorts = 0; shorts <= 1; shorts++) {
                    for (int bytes = 0; bytes <= 3; bytes++) {
                        for (int references = 0; references <= 2; references++) {
                            mixes.add(new int[] {longs, ints, shorts, bytes, references});
                        }
                    }
                }
            }
        }
        for (int i = 0; i < mixes.size(); i++) {
            Class<?> mix = loader.define(classFile("zoo/Mix" + i, "java/lang/Object", mixes.get(i)));
            instances(mix, i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 9);
        }
        for (int i = 0; i < mixes.size(); i++) {
            int[] own = mixes.get(i * 37 % mixes.size());
            Class<?> mix = loader.define(classFile("zoo/Child" + i, "zoo/Mix" + i, own));
            instances(mix, i % 2 == 0 ? 1 : 9);
        }
        animals.add(loader);
    }

    private static void instances(Class<?> type, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            animals.add(type.getConstructor().newInstance());
        }
    }

    // Classes whose layout is special in the JVM: padded classes, classes with injected fields, and classes of varying size.

    static class MyThreadsChild extends MyThread {
        byte flag = 1;
    }

    static class PlainThread extends Thread {}

    static class PlainThreadsChild extends PlainThread {
        int number = 1;
        Object object = "object";
    }

    static void park(int depth) {
        if (depth > 0) {
            park(depth - 1);
        } else {
            while (true) {
                LockSupport.park();
            }
        }
    }

    static void special() throws Exception {
        keep(2, MyThreadsChild::new);
        keep(1, PlainThread::new);
        keep(1, PlainThreadsChild::new);
        keep(1, () -> new InternalError("none"));
        ForkJoinPool pool = new ForkJoinPool(2);
        pool.submit(() -> {}).get();
        animals.add(pool);
        // The adder creates its cells when threads collide, and creates none on a single processor.
        LongAdder adder = new LongAdder();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 300_000; n++) {
                    adder.add(1);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        animals.add(adder);
        SubmissionPublisher<String> publisher = new SubmissionPublisher<>();
        publisher.subscribe(new Flow.Subscriber<String>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                animals.add(subscription);
            }

            @Override
            public void onNext(String item) {}

            @Override
            public void onError(Throwable error) {}

            @Override
            public void onComplete() {}
        });
        animals.add(publisher);
        for (int depth = 0; depth < 60; depth += 10) {
            startVirtual(depth);
        }
        // Wait until all virtual threads are parked.
        Thread.sleep(200);
    }

    /** Starts a virtual thread that waits {@code depth} frames deep, if the JDK has virtual threads. */
    static void startVirtual(int depth) throws Exception {
        try {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Runnable task = () -> park(depth);
            Class.forName("java.lang.Thread$Builder").getMethod("start", Runnable.class).invoke(builder, task);
        } catch (NoSuchMethodException older) {
            // JDKs before 21 have no virtual threads.
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        handWritten();
        special();
        fromTheLibrary();
        arrays();
        generated();
        for (int phase = 1; phase <= 3; phase++) {
            System.gc();
            System.out.println("READY " + phase);
            System.out.flush();
            if (in.readLine() == null) {
                return;
            }
            handWritten();
        }
    }
}
