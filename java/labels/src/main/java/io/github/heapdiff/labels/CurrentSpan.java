package io.github.heapdiff.labels;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;

/** OpenTelemetry's current span and baggage, read without a dependency on OpenTelemetry. */
final class CurrentSpan {
    private static final Class<?> SPAN = Library.find("io.opentelemetry.api.trace.Span");
    private static final Class<?> READABLE = Library.find("io.opentelemetry.sdk.trace.ReadableSpan");
    private static final Class<?> KEY = Library.find("io.opentelemetry.api.common.AttributeKey");
    private static final Class<?> BAGGAGE = Library.find("io.opentelemetry.api.baggage.Baggage");

    private static final MethodHandle CURRENT =
            SPAN == null ? null : Library.findStatic(SPAN, "current", MethodType.methodType(SPAN));
    private static final MethodHandle NAME =
            Library.findVirtual(READABLE, "getName", MethodType.methodType(String.class));
    private static final MethodHandle STRING_KEY =
            KEY == null ? null : Library.findStatic(KEY, "stringKey", MethodType.methodType(KEY, String.class));
    private static final MethodHandle ATTRIBUTE =
            KEY == null ? null : Library.findVirtual(READABLE, "getAttribute", MethodType.methodType(Object.class, KEY));
    private static final MethodHandle BAGGAGE_NOW =
            BAGGAGE == null ? null : Library.findStatic(BAGGAGE, "current", MethodType.methodType(BAGGAGE));
    private static final MethodHandle ENTRY = Library.findVirtual(
            BAGGAGE, "getEntryValue", MethodType.methodType(String.class, String.class));

    /** The span, or null if its name and attributes cannot be read. */
    private final Object span;

    CurrentSpan() {
        Object current = Library.call(CURRENT);
        span = READABLE != null && READABLE.isInstance(current) ? current : null;
    }

    /** Returns the name of the span, or null. */
    String name() {
        return span == null ? null : (String) Library.call(NAME, span);
    }

    /**
     * Returns the span's attribute with this key. If there is no such attribute, returns the current baggage's entry
     * with this key. Returns null if there is no such entry either.
     */
    String value(String key) {
        Object value = span == null ? null : Library.call(ATTRIBUTE, span, Library.call(STRING_KEY, key));
        if (value == null) {
            value = Library.call(ENTRY, Library.call(BAGGAGE_NOW), key);
        }
        return value instanceof String ? (String) value : null;
    }
}
