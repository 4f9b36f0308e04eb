package io.github.heapdiff.labels;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;

/** Reads SLF4J's MDC without a dependency on SLF4J. */
final class Mdc {
    private static final MethodHandle GET = Library.findStatic(
            Library.find("org.slf4j.MDC"), "get", MethodType.methodType(String.class, String.class));

    private Mdc() {
    }

    /** Returns the value of a key, or null. */
    static String value(String key) {
        return (String) Library.call(GET, key);
    }
}
