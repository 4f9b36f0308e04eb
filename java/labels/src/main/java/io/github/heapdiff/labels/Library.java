package io.github.heapdiff.labels;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** Finds and calls methods of libraries that a program may lack. */
final class Library {
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.publicLookup();

    private Library() {
    }

    /**
     * Returns a class, or null if neither this library's class loader nor the thread's context class loader finds it.
     */
    static Class<?> find(String name) {
        ClassLoader[] loaders = {Library.class.getClassLoader(), Thread.currentThread().getContextClassLoader()};
        for (ClassLoader loader : loaders) {
            try {
                return Class.forName(name, true, loader);
            } catch (ClassNotFoundException | LinkageError | RuntimeException missing) {
                // Try the next class loader. A class loader of the program may throw any exception.
            }
        }
        return null;
    }

    /** Returns a static method, or null if the class is null or lacks the method. */
    static MethodHandle findStatic(Class<?> owner, String name, MethodType type) {
        try {
            return owner == null ? null : general(LOOKUP.findStatic(owner, name, type));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException missing) {
            return null;
        }
    }

    /** Returns an instance method, or null if the class is null or lacks the method. */
    static MethodHandle findVirtual(Class<?> owner, String name, MethodType type) {
        try {
            return owner == null ? null : general(LOOKUP.findVirtual(owner, name, type));
        } catch (ReflectiveOperationException | LinkageError | RuntimeException missing) {
            return null;
        }
    }

    private static MethodHandle general(MethodHandle method) {
        return method.asType(method.type().generic());
    }

    /** Calls a method without parameters. Returns null if the method is null or throws an exception. */
    static Object call(MethodHandle method) {
        try {
            return method == null ? null : (Object) method.invokeExact();
        } catch (Throwable failed) {
            return null;
        }
    }

    /** Calls a method. Returns null if the method or its parameter is null, or if the method throws an exception. */
    static Object call(MethodHandle method, Object parameter) {
        try {
            return method == null || parameter == null ? null : (Object) method.invokeExact(parameter);
        } catch (Throwable failed) {
            return null;
        }
    }

    /**
     * Calls a method. Returns null if the method or its first parameter is null, or if the method throws an exception.
     */
    static Object call(MethodHandle method, Object first, Object second) {
        try {
            return method == null || first == null ? null : (Object) method.invokeExact(first, second);
        } catch (Throwable failed) {
            return null;
        }
    }
}
