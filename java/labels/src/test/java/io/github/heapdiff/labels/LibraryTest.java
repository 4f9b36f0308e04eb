package io.github.heapdiff.labels;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Scope;
import java.lang.invoke.MethodType;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;

/** Tests the library in a JVM without the agent. */
class LibraryTest {
    @Test
    void scopesWithoutAnAgentDoNothing() {
        LabelScope none = LabelScope.open("key", "value");
        assertSame(none, LabelScope.open(null, null, "a", "b"));
        assertSame(none, LabelScope.open("a", "b", "c", "d", "e", "f"));
        assertSame(none, LabelScope.openFromMdc("a", null));
        assertSame(none, LabelScope.openFromSpan("a", null));
        assertSame(none, LabelScope.openFromMdc((String[]) null));
        assertSame(none, LabelScope.openFromSpan((String[]) null));
        none.close();
        none.close();
        Runnable task = () -> {};
        assertSame(task, LabelScope.wrap(task));
    }

    @Test
    void valuesOfTheMdc() {
        MDC.put("tenant", "acme");
        assertEquals("acme", Mdc.value("tenant"));
        assertNull(Mdc.value("missing"));
        assertNull(Mdc.value(null));
    }

    @Test
    void withoutASpanOnlyTheBaggageHasValues() {
        CurrentSpan none = new CurrentSpan();
        assertNull(none.name());
        assertNull(none.value("tenant"));
        try (Scope scope = Baggage.builder().put("tenant", "acme").build().makeCurrent()) {
            assertEquals("acme", new CurrentSpan().value("tenant"));
            assertNull(new CurrentSpan().value(null));
        }
    }

    @Test
    void exceptionsOfClassLoadersDoNotReachTheProgram() {
        Thread current = Thread.currentThread();
        ClassLoader before = current.getContextClassLoader();
        current.setContextClassLoader(new ClassLoader(null) {
            @Override
            protected Class<?> findClass(String name) {
                throw new IllegalStateException(name);
            }
        });
        try {
            assertNull(Library.find("com.example.Missing"));
        } finally {
            current.setContextClassLoader(before);
        }
    }

    @Test
    void missingLibrariesHaveNoValues() {
        assertNull(Library.find("com.example.Missing"));
        assertNull(Library.findStatic(null, "get", MethodType.methodType(String.class)));
        assertNull(Library.findVirtual(String.class, "missing", MethodType.methodType(String.class)));
        assertNull(Library.findStatic(String.class, "missing", null));
        assertNull(Library.call(null));
        assertNull(Library.call(null, "a"));
        assertNull(Library.call(null, "a", "b"));
    }
}
