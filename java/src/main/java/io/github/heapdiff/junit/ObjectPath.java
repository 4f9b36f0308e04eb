package io.github.heapdiff.junit;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The path from a GC root to one object, as {@code heapdiff paths} reports it. */
final class ObjectPath {
    private final List<Map<?, ?>> lines;

    private ObjectPath(List<Map<?, ?>> lines) {
        this.lines = lines;
    }

    static ObjectPath of(Map<?, ?> report) {
        List<Map<?, ?>> lines = new ArrayList<>();
        for (Object line : list(report.get("tree"))) {
            if (line instanceof Map) {
                lines.add((Map<?, ?>) line);
            }
        }
        return new ObjectPath(lines);
    }

    /** Returns true if no path of strong references leads to the object. */
    boolean isEmpty() {
        return lines.isEmpty();
    }

    /** Returns the kind of the GC root and its class, for example {@code static com.acme.Orders}. */
    String root() {
        String holder = String.valueOf(lines.get(0).get("class"));
        Object kind = lines.get(0).get("root");
        return kind + " " + ("static".equals(kind) ? holder.replaceFirst("^class ", "") : holder);
    }

    /** Returns the references on the path as text, starting with the reference from the GC root. */
    List<String> steps() {
        List<String> steps = new ArrayList<>();
        for (Map<?, ?> line : lines.subList(1, lines.size())) {
            steps.add(line.get("via") + " = " + line.get("class"));
        }
        return steps;
    }

    /** Returns the id of the object at the end of the path. Empty if the path was too long for the report. */
    Optional<String> object() {
        Map<?, ?> last = lines.get(lines.size() - 1);
        return Long.valueOf(1).equals(last.get("selected_here")) ? id(last) : Optional.empty();
    }

    /** If the path begins with a local variable, returns the id of the object in the variable. */
    Optional<String> local() {
        return lines.size() > 1 && "<local variable>".equals(lines.get(1).get("via")) ? id(lines.get(1)) : Optional.empty();
    }

    private static Optional<String> id(Map<?, ?> line) {
        String id = String.valueOf(line.get("id"));
        return id.matches("0x[0-9a-f]+") ? Optional.of(id) : Optional.empty();
    }

    static List<?> list(Object value) {
        return value instanceof List ? (List<?>) value : List.of();
    }
}
