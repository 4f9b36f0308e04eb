package io.github.heapdiff.junit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One suspect of a heapdiff report. */
final class Suspect {
    /**
     * Divisor for the largest step. Growth is not a leak if the last step adds less than the largest step divided by
     * this number.
     */
    private static final long LEAST_PART_OF_STEP = 4;

    private final Map<?, ?> json;

    private Suspect(Map<?, ?> json) {
        this.json = json;
    }

    /** Returns all suspects of a report. */
    static List<Suspect> all(Map<?, ?> report) {
        List<Suspect> found = new ArrayList<>();
        for (Object each : list(report.get("suspects"))) {
            if (each instanceof Map) {
                found.add(new Suspect((Map<?, ?>) each));
            }
        }
        return found;
    }

    /**
     * Returns true if the growth of the heap could reach the noise limit after a second step. The second step is
     * assumed to add at most {@link #LEAST_PART_OF_STEP} times as much as the first. {@code report} compares the
     * snapshots before and after the first step.
     */
    static boolean mayAppear(Map<?, ?> report) {
        Object delta = report.get("delta");
        if (!(delta instanceof Map)) {
            throw new HeapUndecidedException("the report of heapdiff has no figure for the growth of the heap");
        }
        long grown = number(((Map<?, ?>) delta).get("shallow_bytes"));
        // Earlier versions of heapdiff do not report the noise limit. In this case, use the limit 0. The check may then run its second step
        // although it is not needed.
        Object noise = report.get("noise_bytes");
        return grown >= (noise == null ? 0 : number(noise)) / (1 + LEAST_PART_OF_STEP);
    }

    /**
     * Returns true if neither the verdict nor the growth in the steps of the work is a reason to accept this suspect's
     * growth. In this case, the fraction of growing rounds and the tolerated bytes decide whether the test fails.
     */
    boolean growsInEachStep() {
        return excuse().isEmpty();
    }

    /**
     * Returns the reason why this suspect is not a leak, or an empty {@code Optional} if there is none. Considers only
     * the verdict and the growth in each step of the work.
     */
    Optional<String> excuse() {
        if (verdict().equals("cache")) {
            return Optional.of("the verdict is cache, not leak");
        }
        if (verdict().equals("warmup")) {
            return Optional.of("the verdict is warmup, not leak");
        }
        List<Long> added = steps(figure());
        if (Collections.min(added) <= 0) {
            return Optional.of("in at least one step of the work, its " + figure().replace("_", " ") + " did not grow");
        }
        // Accept growth if the last step adds much less than another step, as in a cache that fills with random keys.
        // If the last step adds more than the others, the number of growing rounds decides. It is known, because a
        // snapshot is taken after each measured round of the last step.
        if (added.get(added.size() - 1) < Collections.max(added) / LEAST_PART_OF_STEP) {
            return Optional.of("the second step added less than a quarter of what the first step added");
        }
        return Optional.empty();
    }

    /**
     * Returns the JSON key of the quantity that measures the growth. This is the number of objects or, if that number
     * never changes, the retained bytes. For example, a growing buffer is always one object.
     */
    private String figure() {
        return steps("objects").stream().allMatch(added -> added == 0) ? "retained_bytes" : "objects";
    }

    /**
     * Returns the number of measured rounds after which the content was larger than after each earlier measured round.
     *
     * <p>A pool or a queue grows and shrinks, and rarely exceeds its own maximum. A leak exceeds its maximum in each round that leaks.
     *
     * @param report a comparison of snapshots; one round ran between consecutive snapshots of the last
     *     {@code rounds + 1}
     * @param rounds number of measured rounds
     */
    int growingRounds(Map<?, ?> report, int rounds) {
        for (Suspect other : all(report)) {
            if (other.path().equals(path()) && other.className().equals(className()) && other.root().equals(root())) {
                List<Long> figures = other.figures(figure());
                List<Long> measured = figures.subList(Math.max(0, figures.size() - rounds - 1), figures.size());
                int growing = 0;
                long most = measured.get(0);
                for (long each : measured) {
                    growing += each > most ? 1 : 0;
                    most = Math.max(most, each);
                }
                return growing;
            }
        }
        // This suspect's holder is not in `report`, because with more snapshots heapdiff may name another holder for
        // the same objects. In this case, return the number of added objects, but at most `rounds`. If the content
        // never shrinks, the number of growing rounds is not larger, because each growing round adds at least one
        // object.
        List<Long> added = steps(figure());
        return (int) Math.min(rounds, added.get(added.size() - 1));
    }

    /** Returns the number with this JSON key in each snapshot. */
    private List<Long> figures(String key) {
        List<Long> figures = new ArrayList<>();
        list(json.get(key)).forEach(figure -> figures.add(number(figure)));
        if (figures.size() < 2) {
            throw new HeapUndecidedException("heapdiff's report does not contain `" + key + "` of a suspect");
        }
        return figures;
    }

    /** Returns the growth of the number with this JSON key from each snapshot to the next. */
    private List<Long> steps(String key) {
        List<Long> figures = figures(key);
        List<Long> steps = new ArrayList<>();
        for (int i = 1; i < figures.size(); i++) {
            steps.add(figures.get(i) - figures.get(i - 1));
        }
        return steps;
    }

    /** Returns the growth of retained bytes from the first snapshot to the last. */
    long growth() {
        List<Long> steps = steps("retained_bytes");
        return steps.stream().mapToLong(Long::longValue).sum();
    }

    long objects() {
        return steps("objects").stream().mapToLong(Long::longValue).sum();
    }

    /** Returns the retained bytes in each snapshot. */
    List<?> retained() {
        return list(json.get("retained_bytes"));
    }

    String verdict() {
        return text("verdict");
    }

    String holder() {
        return text("holder");
    }

    String className() {
        return text("class");
    }

    String root() {
        return text("root");
    }

    List<?> path() {
        return list(json.get("path"));
    }

    List<?> reasons() {
        return list(json.get("reasons"));
    }

    /**
     * Returns the frames of the stack that allocated most of the content, innermost first. Empty if the report has no
     * stack.
     */
    List<?> frames() {
        List<?> stacks = list(json.get("stacks"));
        if (stacks.isEmpty() || !(stacks.get(0) instanceof Map)) {
            return List.of();
        }
        return list(((Map<?, ?>) stacks.get(0)).get("frames"));
    }

    private String text(String key) {
        Object value = json.get(key);
        return value instanceof String ? (String) value : "";
    }

    private static List<?> list(Object value) {
        return value instanceof List ? (List<?>) value : List.of();
    }

    private static long number(Object value) {
        if (value instanceof Long) {
            return (Long) value;
        }
        throw new HeapUndecidedException("heapdiff's report has " + value + " instead of a number");
    }
}
