package io.github.heapdiff.junit;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** One suspect of a report, as heapdiff says it. */
final class Suspect {
    /** Of two steps of equal work none grows by less than this part of the other, where each round leaks. */
    private static final long LEAST_PART_OF_STEP = 4;

    private final Map<?, ?> json;

    private Suspect(Map<?, ?> json) {
        this.json = json;
    }

    /** What grows with each round: none of it is a cache or a warm-up, and each step of the work added to it. */
    static List<Suspect> growingWithRounds(Map<?, ?> report, GrowthOptions options) {
        List<Suspect> found = new ArrayList<>();
        for (Object each : list(report.get("suspects"))) {
            if (each instanceof Map) {
                Suspect suspect = new Suspect((Map<?, ?>) each);
                if (suspect.growsWithRounds(options.rounds()) && suspect.growth() > options.toleratedBytes()) {
                    found.add(suspect);
                }
            }
        }
        return found;
    }

    /** Whether a second step like this one could make a suspect of what is too little for one yet. */
    static boolean mayAppear(Map<?, ?> report) {
        Object delta = report.get("delta");
        if (!(delta instanceof Map)) {
            throw new HeapUndecidedException("heapdiff's report has no figures of the heap");
        }
        long grown = number(((Map<?, ?>) delta).get("shallow_bytes"));
        // Where heapdiff does not say what it takes for noise, a second step costs time and nothing else.
        Object noise = report.get("noise_bytes");
        return grown >= (noise == null ? 0 : number(noise)) / (1 + LEAST_PART_OF_STEP);
    }

    private boolean growsWithRounds(int rounds) {
        String verdict = text("verdict");
        if (!verdict.equals("leak") && !verdict.equals("growth")) {
            return false;
        }
        List<Long> objects = steps("objects");
        long least = Collections.min(objects);
        if (least == 0 && Collections.max(objects) == 0) {
            // The same objects grew, such as a buffer.
            return even(steps("retained_bytes"));
        }
        return least >= rounds && even(objects);
    }

    private static boolean even(List<Long> steps) {
        long least = Collections.min(steps);
        return least > 0 && least >= Collections.max(steps) / LEAST_PART_OF_STEP;
    }

    /** What each step added to a list of figures. */
    private List<Long> steps(String key) {
        List<?> figures = list(json.get(key));
        List<Long> steps = new ArrayList<>();
        for (int i = 1; i < figures.size(); i++) {
            steps.add(number(figures.get(i)) - number(figures.get(i - 1)));
        }
        if (steps.isEmpty()) {
            throw new HeapUndecidedException("heapdiff's report has no figures `" + key + "` of a suspect");
        }
        return steps;
    }

    /** Growth of retained bytes from the first snapshot to the last. */
    long growth() {
        List<Long> steps = steps("retained_bytes");
        return steps.stream().mapToLong(Long::longValue).sum();
    }

    long objects() {
        return steps("objects").stream().mapToLong(Long::longValue).sum();
    }

    /** Retained bytes in each snapshot. */
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

    /** The stack that allocated most of it, its leaf first; empty without the agent. */
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
        throw new HeapUndecidedException("heapdiff's report has no number where one should be: " + value);
    }
}
