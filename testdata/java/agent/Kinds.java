import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;

/** Allocates objects in every possible way, N objects in each way, and keeps them. Each way has its own method. */
public class Kinds {
    static final int N = 200;
    static final List<Object> kept = new ArrayList<>(100_000);
    static final int[] ints = new int[9];
    static final Plain[] plains = new Plain[9];
    static final Copy original = new Copy();
    static byte[] saved;
    static Constructor<Plain> constructor;
    static MethodHandle handle;

    static class Plain {
        int x;
    }

    static class Copy implements Cloneable {
        int x;

        Copy copy() throws CloneNotSupportedException {
            return (Copy) clone();
        }
    }

    static class Saved implements Serializable {
        int x = 1;
    }

    record Point(int x, int y) {}

    static class Deep {}

    static class OfThread {}

    interface Make {
        Object make(int i) throws Throwable;
    }

    static native Object jniObject(Class<?> c);

    static native Object jniIntArray(int length);

    static Object newObject(int i) { return new Plain(); }

    static Object intArray(int i) { return new int[5]; }

    static Object objectArray(int i) { return new Plain[4]; }

    static Object twoDimensions(int i) { return new int[3][4]; }

    static Object threeDimensions(int i) { return new int[2][3][4]; }

    static Object cloned(int i) throws Throwable { return original.copy(); }

    static Object clonedArray(int i) { return ints.clone(); }

    static Object clonedObjects(int i) { return plains.clone(); }

    static Object copyOf(int i) { return Arrays.copyOf(ints, 20); }

    static Object reflection(int i) throws Throwable { return constructor.newInstance(); }

    static Object arrayReflection(int i) { return Array.newInstance(Plain.class, 3); }

    static Object methodHandle(int i) throws Throwable { return (Plain) handle.invoke(); }

    static Object deserialised(int i) throws Throwable {
        return new ObjectInputStream(new ByteArrayInputStream(saved)).readObject();
    }

    static Object lambda(int i) {
        Supplier<Integer> s = () -> i;
        return s;
    }

    static Object boxed(int i) { return (Object) (i + 100_000); }

    static Object concatenated(int i) { return "a" + i + "b"; }

    static Object record(int i) { return new Point(i, i); }

    static Object large(int i) { return i % 20 == 0 ? new byte[2 << 20] : null; }

    static Object nullPointer(int i) {
        Plain none = i < 0 ? new Plain() : null;
        try {
            return none.x;
        } catch (NullPointerException e) {
            return e;
        }
    }

    static Object outOfBounds(int i) {
        try {
            return ints[i + 100];
        } catch (ArrayIndexOutOfBoundsException e) {
            return e;
        }
    }

    static Object thread(int i) { return new Thread(() -> {}, "unstarted"); }

    static Object viaJni(int i) { return jniObject(Plain.class); }

    static Object arrayViaJni(int i) { return jniIntArray(7); }

    static Object recursion(int i) { return i % 20 == 0 ? down(300) : null; }

    static Object down(int levels) { return levels == 0 ? new Deep() : down(levels - 1); }

    static void run(Make make) throws Throwable {
        for (int i = 0; i < N; i++) {
            Object o = make.make(i);
            synchronized (kept) {
                kept.add(o);
            }
        }
    }

    public static void main(String[] args) throws Throwable {
        System.load(args[0]);
        constructor = Plain.class.getDeclaredConstructor();
        handle = MethodHandles.lookup().findConstructor(Plain.class, MethodType.methodType(void.class));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new Saved());
        }
        saved = bytes.toByteArray();
        run(Kinds::newObject);
        run(Kinds::intArray);
        run(Kinds::objectArray);
        run(Kinds::twoDimensions);
        run(Kinds::threeDimensions);
        run(Kinds::cloned);
        run(Kinds::clonedArray);
        run(Kinds::clonedObjects);
        run(Kinds::copyOf);
        run(Kinds::reflection);
        run(Kinds::arrayReflection);
        run(Kinds::methodHandle);
        run(Kinds::deserialised);
        run(Kinds::lambda);
        run(Kinds::boxed);
        run(Kinds::concatenated);
        run(Kinds::record);
        run(Kinds::large);
        run(Kinds::nullPointer);
        run(Kinds::outOfBounds);
        run(Kinds::thread);
        run(Kinds::viaJni);
        run(Kinds::arrayViaJni);
        run(Kinds::recursion);
        Thread[] threads = new Thread[500];
        CountDownLatch all = new CountDownLatch(1);
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                try {
                    all.await();
                    inThread();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            }, "worker-" + t);
            threads[t].start();
        }
        all.countDown();
        for (Thread t : threads) {
            t.join();
        }
        System.out.println("READY 1");
        System.in.read();
    }

    static void inThread() {
        for (int i = 0; i < 10; i++) {
            Object o = new OfThread();
            synchronized (kept) {
                kept.add(o);
            }
        }
    }
}
