package io.github.heapdiff.labels;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.TimeUnit;

/** Methods of the class heapdiff.Labels, which the agent defines in the boot class loader when it starts. */
final class AgentLabels {
    private static final long INTERVAL = TimeUnit.SECONDS.toNanos(1);

    private static volatile AgentLabels loaded = load();
    /** The earliest time at which the library looks for the agent's class again. */
    private static volatile long next = System.nanoTime() + INTERVAL;

    private final MethodHandle get;
    private final MethodHandle set;
    private final MethodHandle add;

    private AgentLabels(Class<?> labels) throws ReflectiveOperationException {
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        get = lookup.findStatic(labels, "get", MethodType.methodType(int.class, Thread.class));
        set = lookup.findStatic(labels, "set", MethodType.methodType(void.class, Thread.class, int.class));
        add = lookup.findStatic(labels, "add", MethodType.methodType(int.class, int.class, String.class));
    }

    /** Returns the methods, or null if this JVM has no agent. Looks for the agent at most once a second. */
    static AgentLabels find() {
        AgentLabels labels = loaded;
        if (labels != null) {
            return labels;
        }
        long now = System.nanoTime();
        if (now - next < 0) {
            return null;
        }
        next = now + INTERVAL;
        loaded = load();
        return loaded;
    }

    private static AgentLabels load() {
        try {
            return new AgentLabels(Class.forName("heapdiff.Labels", false, null));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException noAgent) {
            return null;
        }
    }

    /** Returns the id of the current thread's set of labels, or 0 if it has no labels. */
    int get(Thread current) {
        try {
            return (int) get.invokeExact(current);
        } catch (Throwable failed) {
            return 0;
        }
    }

    /** Sets the labels of the current thread, by the id of the set. */
    void set(Thread current, int labels) {
        try {
            set.invokeExact(current, labels);
        } catch (Throwable failed) {
            // Ignore the error. The samples then lack these labels.
        }
    }

    /**
     * Returns the id of the set that consists of the labels of the set {@code outer} and the labels in {@code more}.
     */
    int add(int outer, String more) {
        try {
            return (int) add.invokeExact(outer, more);
        } catch (Throwable failed) {
            return outer;
        }
    }
}
