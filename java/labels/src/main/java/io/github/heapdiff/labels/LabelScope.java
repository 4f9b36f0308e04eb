package io.github.heapdiff.labels;

import java.util.concurrent.ConcurrentHashMap;

/**
 * Labels for the objects that the current thread allocates until the scope is closed. The agent of heapdiff stores the
 * labels with each sample, and reports name the labels of the objects that leak.
 *
 * <pre>{@code
 * try (LabelScope scope = LabelScope.open("tenant", tenant, "route", "POST /book")) {
 *     handle(request);
 * }
 * }</pre>
 *
 * <p>A thread has at most three labels. A scope inside of another scope adds its labels, and replaces labels with the
 * same key. If a thread already has three labels, a label with another key is left out. Labels follow a virtual thread,
 * but not a task that is handed to another thread: open a scope in that thread, too.
 *
 * <p>Use values that repeat, such as tenants and routes, not ids of requests: the agent stores at most 16,384 different
 * sets of labels. Keys are truncated to 64 bytes and values to 128 bytes.
 *
 * <p>Without the agent, a scope does nothing and costs about as much as reading a clock. No method throws an exception.
 */
public final class LabelScope implements AutoCloseable {
    private static final char SEPARATOR = '\u001f';
    /** Maximum number of cached sets. */
    private static final int CACHED = 1 << 15;
    private static final LabelScope NONE = new LabelScope(null, null, 0, 0);

    /** The numbers of sets, by the outer set and the text of the inner labels. */
    private static final ConcurrentHashMap<String, Integer> NUMBERS = new ConcurrentHashMap<>();

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
     * Opens a scope with the values that SLF4J's MDC has now for these keys. Keys without a value are left out. Without
     * SLF4J on the class path, the scope has no labels.
     */
    public static LabelScope openFromMdc(String... keys) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null) {
            return NONE;
        }
        StringBuilder labels = new StringBuilder();
        for (String key : keys) {
            append(labels, key, Mdc.value(key));
        }
        return open(agent, labels);
    }

    /**
     * Opens a scope with OpenTelemetry's current span: the label "span" is its name. Each of "keys" adds a label with the
     * span's attribute of this name, or, without such an attribute, the entry of the current baggage. Keys without a
     * value are left out.
     *
     * <p>The name and the attributes are those of the SDK's spans. With the Java agent of OpenTelemetry a program cannot
     * read them; then only entries of the baggage are available. Without OpenTelemetry on the class path, the scope has
     * no labels.
     */
    public static LabelScope openFromSpan(String... keys) {
        AgentLabels agent = AgentLabels.find();
        if (agent == null) {
            return NONE;
        }
        CurrentSpan span = new CurrentSpan();
        StringBuilder labels = append(new StringBuilder(), "span", span.name());
        for (String key : keys) {
            append(labels, key, span.value(key));
        }
        return open(agent, labels);
    }

    private static LabelScope open(AgentLabels agent, StringBuilder more) {
        if (more.length() == 0) {
            return NONE;
        }
        Thread thread = Thread.currentThread();
        int outer = agent.get(thread);
        String key = more.append(SEPARATOR).append(outer).toString();
        Integer known = NUMBERS.get(key);
        int labels;
        if (known != null) {
            labels = known;
        } else {
            labels = agent.add(outer, key.substring(0, key.lastIndexOf(SEPARATOR)));
            if (NUMBERS.size() >= CACHED) {
                NUMBERS.clear();
            }
            NUMBERS.put(key, labels);
        }
        if (labels == outer) {
            return NONE;
        }
        agent.set(thread, labels);
        return new LabelScope(agent, thread, outer, labels);
    }

    private static StringBuilder append(StringBuilder labels, String key, String value) {
        if (key == null || value == null) {
            return labels;
        }
        if (labels.length() > 0) {
            labels.append(SEPARATOR);
        }
        return labels.append(clean(key).replace('=', ' ')).append('=').append(clean(value));
    }

    private static String clean(String text) {
        return text.indexOf(SEPARATOR) < 0 ? text : text.replace(SEPARATOR, ' ');
    }

    /**
     * Restores the labels that the thread had when the scope was opened. Does nothing on another thread, and if a scope
     * that was opened later is still open.
     */
    @Override
    public void close() {
        if (agent != null && thread == Thread.currentThread() && agent.get(thread) == labels) {
            agent.set(thread, outer);
        }
    }
}
