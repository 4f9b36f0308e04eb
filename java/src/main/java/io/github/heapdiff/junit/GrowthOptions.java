package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/** How growth is looked for. Instances do not change: each {@code with} method returns another one. */
public final class GrowthOptions {
    static final int ROUNDS = 5;
    static final int WARM_UP = 5;

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final int rounds;
    private final int warmUp;
    private final long toleratedBytes;
    private final Path program;
    private final Path ignore;
    private final boolean keepDumps;
    private final WhenUndecided whenUndecided;
    private final Duration timeout;

    private GrowthOptions(
            int rounds,
            int warmUp,
            long toleratedBytes,
            Path program,
            Path ignore,
            boolean keepDumps,
            WhenUndecided whenUndecided,
            Duration timeout) {
        if (rounds < 1) {
            throw new IllegalArgumentException("rounds: " + rounds + ", and at least 1 is needed between two snapshots");
        }
        if (warmUp < 0 || toleratedBytes < 0) {
            throw new IllegalArgumentException("neither warm-up rounds nor tolerated bytes can be negative");
        }
        if (timeout.isNegative() || timeout.isZero()) {
            throw new IllegalArgumentException("timeout: " + timeout);
        }
        this.rounds = rounds;
        this.warmUp = warmUp;
        this.toleratedBytes = toleratedBytes;
        this.program = program;
        this.ignore = ignore;
        this.keepDumps = keepDumps;
        this.whenUndecided = whenUndecided;
        this.timeout = timeout;
    }

    /**
     * The defaults, and what system properties say: {@code heapdiff.program}, {@code heapdiff.ignore}, {@code heapdiff.keepDumps},
     * {@code heapdiff.whenUndecided}.
     */
    public static GrowthOptions defaults() {
        return new GrowthOptions(
                ROUNDS,
                WARM_UP,
                0,
                property("heapdiff.program").map(Path::of).orElse(null),
                property("heapdiff.ignore").map(Path::of).orElse(null),
                property("heapdiff.keepDumps").map(GrowthOptions::yes).orElse(false),
                property("heapdiff.whenUndecided").map(GrowthOptions::undecided).orElse(WhenUndecided.FAIL),
                TIMEOUT);
    }

    /** Rounds between two snapshots. */
    public GrowthOptions withRounds(int count) {
        return new GrowthOptions(count, warmUp, toleratedBytes, program, ignore, keepDumps, whenUndecided, timeout);
    }

    /** Rounds before the first snapshot. */
    public GrowthOptions withWarmUp(int count) {
        return new GrowthOptions(rounds, count, toleratedBytes, program, ignore, keepDumps, whenUndecided, timeout);
    }

    /** A holder may grow by so many bytes from the first snapshot to the last. */
    public GrowthOptions withToleratedBytes(long bytes) {
        return new GrowthOptions(rounds, warmUp, bytes, program, ignore, keepDumps, whenUndecided, timeout);
    }

    /** The heapdiff program; without it, the environment's {@code HEAPDIFF} and {@code PATH} are looked at. */
    public GrowthOptions withProgram(Path file) {
        return new GrowthOptions(
                rounds, warmUp, toleratedBytes, Objects.requireNonNull(file), ignore, keepDumps, whenUndecided, timeout);
    }

    /** A file of known growth, as {@code heapdiff --ignore} reads it. */
    public GrowthOptions withIgnore(Path file) {
        return new GrowthOptions(
                rounds, warmUp, toleratedBytes, program, Objects.requireNonNull(file), keepDumps, whenUndecided, timeout);
    }

    /** Whether the dumps stay, with their folder in the message. */
    public GrowthOptions withKeepDumps(boolean keep) {
        return new GrowthOptions(rounds, warmUp, toleratedBytes, program, ignore, keep, whenUndecided, timeout);
    }

    /** What becomes of the test when it cannot be told whether the heap grew. */
    public GrowthOptions withWhenUndecided(WhenUndecided what) {
        return new GrowthOptions(
                rounds, warmUp, toleratedBytes, program, ignore, keepDumps, Objects.requireNonNull(what), timeout);
    }

    /** How long heapdiff may take for one comparison. */
    public GrowthOptions withTimeout(Duration limit) {
        return new GrowthOptions(rounds, warmUp, toleratedBytes, program, ignore, keepDumps, whenUndecided, limit);
    }

    int rounds() {
        return rounds;
    }

    int warmUp() {
        return warmUp;
    }

    long toleratedBytes() {
        return toleratedBytes;
    }

    Optional<Path> program() {
        return Optional.ofNullable(program);
    }

    Optional<Path> ignore() {
        return Optional.ofNullable(ignore);
    }

    boolean keepDumps() {
        return keepDumps;
    }

    WhenUndecided whenUndecided() {
        return whenUndecided;
    }

    Duration timeout() {
        return timeout;
    }

    private static Optional<String> property(String name) {
        return Optional.ofNullable(System.getProperty(name)).filter(text -> !text.isBlank());
    }

    private static boolean yes(String text) {
        if (text.equals("true") || text.equals("false")) {
            return text.equals("true");
        }
        throw new IllegalArgumentException("heapdiff.keepDumps is true or false, not " + text);
    }

    private static WhenUndecided undecided(String text) {
        for (WhenUndecided each : WhenUndecided.values()) {
            if (each.name().equalsIgnoreCase(text)) {
                return each;
            }
        }
        throw new IllegalArgumentException("heapdiff.whenUndecided is fail or abort, not " + text);
    }
}
