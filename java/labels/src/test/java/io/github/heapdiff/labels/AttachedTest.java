package io.github.heapdiff.labels;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.MDC;

/** Tests the labels of samples. The test attaches the agent to its own JVM after it opened the first scope. */
class AttachedTest {
    private static final List<Object> KEPT = new ArrayList<>();

    static final class Early {}

    static final class Mapped {}

    static final class Traced {}

    static final class Inner {}

    @TempDir
    Path folder;

    private static String heapdiff(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("heapdiff.program")));
        command.addAll(Arrays.asList(arguments));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
        return output;
    }

    /** Keeps an object that a new thread allocates. A new thread is sampled from its first allocation on. */
    private static void keep(Supplier<LabelScope> open, Supplier<Object> object) throws InterruptedException {
        Thread thread = new Thread(() -> {
            try (LabelScope scope = open.get()) {
                KEPT.add(object.get());
            }
        });
        thread.start();
        thread.join();
    }

    private static LabelScope span() {
        try (SdkTracerProvider provider = SdkTracerProvider.builder().build()) {
            Tracer tracer = provider.get("test");
            Span span = tracer.spanBuilder("POST /book").setAttribute("http.route", "/book").startSpan();
            Baggage baggage = Baggage.builder().put("tenant", "acme").build();
            try (Scope current = span.makeCurrent(); Scope with = baggage.makeCurrent()) {
                return LabelScope.openFromSpan("http.route", "tenant", "missing");
            }
        }
    }

    @Test
    void samplesHaveTheLabelsOfMdcAndSpan() throws Exception {
        String pid = Long.toString(ProcessHandle.current().pid());
        LabelScope early = LabelScope.open("tenant", "early");
        heapdiff("attach", pid, "interval=0");
        // The library looks for the agent at most once a second.
        Thread.sleep(1100);
        early.close();
        keep(() -> early, Early::new);
        keep(() -> {
            MDC.put("tenant", "acme");
            MDC.put("user", "7".repeat(1 << 20));
            return LabelScope.openFromMdc("tenant", "user", "missing");
        }, Mapped::new);
        keep(AttachedTest::span, Traced::new);
        keep(() -> LabelScope.open("tenant", "acme"), () -> {
            try (LabelScope inner = LabelScope.open("a", "1", "b", "2", "a=b\u001f", "3")) {
                return new Inner();
            }
        });

        String dump = folder.resolve("labels.hprof").toString();
        heapdiff("dump", pid, "-o", dump, "-q");
        String sql = "select class, labels from samples where class like '%AttachedTest$%' and class not like '%Lambda%'"
                + " and not is_definition and collected_ms is null order by class";
        String rows = heapdiff("query", dump, sql, "--format", "csv", "-q").replace(AttachedTest.class.getName() + "$", "");
        String expected = String.join(
                System.lineSeparator(),
                "class,labels",
                "Early,",
                "Inner,\"tenant=acme, a=1, b=2\"",
                "Mapped,\"tenant=acme, user=" + "7".repeat(128) + "\"",
                "Traced,\"span=POST /book, http.route=/book, tenant=acme\"",
                "");
        assertEquals(expected, rows);
    }
}
