package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The options of a check. Instances are immutable: each {@code with} method returns a changed copy. */
public final class GrowthOptions {
    static final int ROUNDS = 5;
    static final int WARM_UP = 5;
    static final double MIN_GROWING_SHARE = 0.5;

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private int rounds = ROUNDS;
    private int warmUp = WARM_UP;
    private double minGrowingShare = MIN_GROWING_SHARE;
    private long toleratedBytes;
    private Path program;
    private Path ignore;
    private boolean keepDumps;
    private Forking forking = Forking.AUTO;
    private WhenUndecided whenUndecided = WhenUndecided.FAIL;
    private Duration timeout = TIMEOUT;

    private GrowthOptions() {}

    /** Returns a copy with one change. */
    private GrowthOptions with(Consumer<GrowthOptions> change) {
        GrowthOptions other = new GrowthOptions();
        other.rounds = rounds;
        other.warmUp = warmUp;
        other.minGrowingShare = minGrowingShare;
        other.toleratedBytes = toleratedBytes;
        other.program = program;
        other.ignore = ignore;
        other.keepDumps = keepDumps;
        other.forking = forking;
        other.whenUndecided = whenUndecided;
        other.timeout = timeout;
        change.accept(other);
        return other;
    }

    /**
     * Returns the defaults, with the values of these system properties: {@code heapdiff.program}, {@code heapdiff.ignore}, {@code heapdiff.keepDumps},
     * {@code heapdiff.fork}, {@code heapdiff.whenUndecided}.
     */
    public static GrowthOptions defaults() {
        GrowthOptions options = new GrowthOptions();
        property("heapdiff.program").ifPresent(file -> options.program = Path.of(file));
        property("heapdiff.ignore").ifPresent(file -> options.ignore = Path.of(file));
        property("heapdiff.keepDumps").ifPresent(text -> options.keepDumps = yes(text));
        property("heapdiff.fork").ifPresent(text -> options.forking = one(Forking.values(), "heapdiff.fork", text));
        property("heapdiff.whenUndecided")
                .ifPresent(text -> options.whenUndecided = one(WhenUndecided.values(), "heapdiff.whenUndecided", text));
        return options;
    }

    /** Sets how often the check runs the work in each of its two steps. One such run is a round. */
    public GrowthOptions withRounds(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("rounds must be at least 1, but is " + count);
        }
        return with(options -> options.rounds = count);
    }

    /** Sets how often the check runs the work before the first snapshot. */
    public GrowthOptions withWarmUp(int count) {
        return with(options -> options.warmUp = (int) notNegative(count, "warm-up rounds"));
    }

    /**
     * Sets the minimum share of growing rounds, above 0 and at most 1. The check fails only if the content of one
     * holder grows in at least this share of the measured rounds. The holder is the field whose content grows.
     */
    public GrowthOptions withMinGrowingShare(double share) {
        // This condition also rejects NaN.
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("minGrowingShare must be above 0 and at most 1, but is " + share);
        }
        return with(options -> options.minGrowingShare = share);
    }

    /** Sets the maximum number of bytes by which a holder may grow from the first snapshot to the last. */
    public GrowthOptions withToleratedBytes(long bytes) {
        return with(options -> options.toleratedBytes = notNegative(bytes, "tolerated bytes"));
    }

    /**
     * Sets the path of the heapdiff program. If neither this option nor the system property {@code heapdiff.program} is
     * set, the library uses the environment variable {@code HEAPDIFF}, and then searches the {@code PATH}.
     */
    public GrowthOptions withProgram(Path file) {
        Objects.requireNonNull(file);
        return with(options -> options.program = file);
    }

    /** Sets a file with rules for known growth, in the format of {@code heapdiff --ignore}. */
    public GrowthOptions withIgnore(Path file) {
        Objects.requireNonNull(file);
        return with(options -> options.ignore = file);
    }

    /** Keeps the dumps if {@code keep} is true. The message of a failed test then contains the folder of the dumps. */
    public GrowthOptions withKeepDumps(boolean keep) {
        return with(options -> options.keepDumps = keep);
    }

    /** Sets the process that writes the snapshots: a forked child or this JVM. */
    public GrowthOptions withForking(Forking who) {
        Objects.requireNonNull(who);
        return with(options -> options.forking = who);
    }

    /** Sets whether a test fails or is aborted if the library cannot decide. */
    public GrowthOptions withWhenUndecided(WhenUndecided what) {
        Objects.requireNonNull(what);
        return with(options -> options.whenUndecided = what);
    }

    /**
     * Sets the maximum time of each run of the heapdiff program, such as a comparison or a forked snapshot. The default
     * is 60 s.
     */
    public GrowthOptions withTimeout(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw new IllegalArgumentException("timeout: " + limit);
        }
        return with(options -> options.timeout = limit);
    }

    int rounds() {
        return rounds;
    }

    int warmUp() {
        return warmUp;
    }

    double minGrowingShare() {
        return minGrowingShare;
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

    Forking forking() {
        return forking;
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
        throw new IllegalArgumentException("heapdiff.keepDumps must be true or false, but is " + text);
    }

    private static <E extends Enum<E>> E one(E[] values, String property, String text) {
        for (E each : values) {
            if (each.name().equalsIgnoreCase(text)) {
                return each;
            }
        }
        String all = Stream.of(values).map(each -> each.name().toLowerCase(Locale.ROOT)).collect(Collectors.joining(", "));
        throw new IllegalArgumentException(property + " must be one of " + all + ", but is " + text);
    }

    private static long notNegative(long number, String what) {
        if (number < 0) {
            throw new IllegalArgumentException(what + " cannot be negative: " + number);
        }
        return number;
    }
}
