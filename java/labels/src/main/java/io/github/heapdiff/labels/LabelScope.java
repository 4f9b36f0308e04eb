package io.github.heapdiff.labels;

import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Labels for the objects that the current thread allocates until the scope is closed. The agent of heapdiff stores the
 * labels with each sample, and reports name the labels of the objects that survive.
 *
 * <pre>{@code
 * try (LabelScope scope = LabelScope.open("tenant", tenant, "route", "POST /book")) {
 *     handle(request);
 * }
 * }</pre>
 *
 * <p>A thread has at most three labels. A scope inside of another scope adds its labels, and replaces labels with the
 * same key. If a thread already has three labels, a label with another key is left out. Labels follow a virtual thread
 * to other carrier threads. Tasks that run on another thread have the labels only if they were wrapped.
 *
 * <p>Use values that repeat, such as tenants and routes, not ids of requests: the agent stores at most 16,384 different
 * sets of labels. Keys are truncated to 64 bytes and values to 128 bytes. Each heap dump contains the labels.
 *
 * <p>Without the agent, a scope does nothing and costs about as much as reading a clock. Errors of the agent, of SLF4J
 * and of OpenTelemetry do not reach the program; the labels are then missing.
 */
public final class LabelScope implements AutoCloseable {
    private static final char SEPARATOR = '\u001f';
    /** Maximum length of a key in characters. The agent also truncates a key to this number of bytes. */
    private static final int KEY = 64;
    /** Maximum length of a value in characters. The agent also truncates a value to this number of bytes. */
    private static final int VALUE = 128;
    /** Maximum number of sets in {@link #IDS}. */
    private static final int CACHED = 1 << 15;
    private static final LabelScope NONE = new LabelScope(null, null, 0, 0);

    /**
     * The ids of sets of labels. A key consists of the labels of a scope and the id of the set that the scope extends.
     */
    private static final ConcurrentHashMap<String, Integer> IDS = new ConcurrentHashMap<>();

    private final AgentLabels agent;
    private final Thread thread;
    private final int outer;
    private final int labels;

    private LabelScope(AgentLabels agent, Thread thread, int outer, int labels) {
        this.agent = agent;
        this.thread = thread;
        this.outer = outer;
        this.labels = labels;
    }

    /** Opens a scope with one label. A label whose key or value is null is left out. */
    public static LabelScope open(String key, String value) {
        AgentLabels agent = AgentLabels.find();
        return agent == null ? NONE : open(agent, append(new StringBuilder(), key, value));
    }

    /** Opens a scope with two labels. A label whose key or value is null is left out. */
    public static LabelScope open(String key1, String value1, String key2, String value2) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null) {
            return NONE;
        }
        return open(agent, append(append(new StringBuilder(), key1, value1), key2, value2));
    }

    /** Opens a scope with three labels. A label whose key or value is null is left out. */
    public static LabelScope open(
            String key1, String value1, String key2, String value2, String key3, String value3) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null) {
            return NONE;
        }
        StringBuilder two = append(append(new StringBuilder(), key1, value1), key2, value2);
        return open(agent, append(two, key3, value3));
    }

    /**
     * Opens a scope with the values that SLF4J's MDC has now for these keys. Keys without a value are left out.
     *
     * <p>The library looks for SLF4J only once, at the first call in a JVM with the agent. It searches the class loader
     * of this library and the context class loader of the thread. If it does not find SLF4J, no call adds labels.
     */
    public static LabelScope openFromMdc(String... keys) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null || keys == null) {
            return NONE;
        }
        StringBuilder labels = new StringBuilder();
        for (String key : keys) {
            append(labels, key, Mdc.value(key));
        }
        return open(agent, labels);
    }

    /**
     * Opens a scope with the label "span", whose value is the name of OpenTelemetry's current span. For each key, adds
     * a label with the span attribute of this name. If the span has no such attribute, the label has the entry of the
     * current baggage. Keys without a value are left out. Pass at most two keys, because a thread has at most three
     * labels.
     *
     * <p>If the program uses the SDK of OpenTelemetry, the name and the attributes of spans are readable. If the
     * program runs with the Java agent of OpenTelemetry, only baggage is readable. The library looks for OpenTelemetry
     * only once, at the first call in a JVM with the agent of heapdiff. If it does not find OpenTelemetry, no call adds
     * labels.
     */
    public static LabelScope openFromSpan(String... keys) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null || keys == null) {
            return NONE;
        }
        CurrentSpan span = new CurrentSpan();
        StringBuilder labels = append(new StringBuilder(), "span", span.name());
        for (String key : keys) {
            append(labels, key, span.value(key));
        }
        return open(agent, labels);
    }

    /**
     * Returns a task that runs with the labels that the calling thread has now, whichever thread runs the task. If the
     * calling thread has no labels now, the task runs without labels.
     */
    public static Runnable wrap(Runnable task) {
        LabelScope scope = capture();
        return scope == NONE ? task : () -> {
            try (LabelScope labels = scope.reopen()) {
                task.run();
            }
        };
    }

    /**
     * Returns a task that runs with the labels that the calling thread has now, whichever thread runs the task. If the
     * calling thread has no labels now, the task runs without labels.
     */
    public static <T> Callable<T> wrap(Callable<T> task) {
        LabelScope scope = capture();
        return scope == NONE ? task : () -> {
            try (LabelScope labels = scope.reopen()) {
                return task.call();
            }
        };
    }

    private static LabelScope capture() {
        AgentLabels agent = AgentLabels.find();
        return agent == null ? NONE : new LabelScope(agent, null, 0, agent.get(Thread.currentThread()));
    }

    /** Opens a scope with the labels of this scope on the current thread. */
    private LabelScope reopen() {
        Thread current = Thread.currentThread();
        return open(agent, current, agent.get(current), labels);
    }

    private static LabelScope open(AgentLabels agent, StringBuilder more) {
        if (more.length() == 0) {
            return NONE;
        }
        Thread current = Thread.currentThread();
        int outer = agent.get(current);
        String key = more.append(SEPARATOR).append(outer).toString();
        Integer known = IDS.get(key);
        int labels;
        if (known != null) {
            labels = known;
        } else {
            labels = agent.add(outer, key.substring(0, key.lastIndexOf(SEPARATOR)));
            if (IDS.size() >= CACHED) {
                IDS.clear();
            }
            IDS.put(key, labels);
        }
        return open(agent, current, outer, labels);
    }

    private static LabelScope open(AgentLabels agent, Thread current, int outer, int labels) {
        if (labels == outer) {
            return NONE;
        }
        agent.set(current, labels);
        return new LabelScope(agent, current, outer, labels);
    }

    private static StringBuilder append(StringBuilder labels, String key, String value) {
        if (key == null || value == null) {
            return labels;
        }
        if (labels.length() > 0) {
            labels.append(SEPARATOR);
        }
        return labels.append(clean(key, KEY).replace('=', ' ')).append('=').append(clean(value, VALUE));
    }

    /** Truncates a string, because {@link #IDS} stores it. Replaces separators by spaces. */
    private static String clean(String text, int most) {
        String cut = text.length() > most ? text.substring(0, most) : text;
        return cut.indexOf(SEPARATOR) < 0 ? cut : cut.replace(SEPARATOR, ' ');
    }

    /**
     * Restores the labels that the thread had before this scope. Close scopes on the thread that opened them, in reverse
     * order of opening. Otherwise the call does nothing, and the thread might keep the labels.
     */
    @Override
    public void close() {
        if (agent != null && thread == Thread.currentThread() && agent.get(thread) == labels) {
            agent.set(thread, outer);
        }
    }
}
