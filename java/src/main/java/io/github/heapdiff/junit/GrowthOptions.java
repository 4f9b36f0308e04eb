package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** How growth is looked for. Instances do not change: each {@code with} method returns another one. */
public final class GrowthOptions {
    static final int ROUNDS = 5;
    static final int WARM_UP = 5;

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private int rounds = ROUNDS;
    private int warmUp = WARM_UP;
    private long toleratedBytes;
    private Path program;
    private Path ignore;
    private boolean keepDumps;
    private Forking forking = Forking.AUTO;
    private WhenUndecided whenUndecided = WhenUndecided.FAIL;
    private Duration timeout = TIMEOUT;

    private GrowthOptions() {}

    /** Another one, changed in one thing. */
    private GrowthOptions with(Consumer<GrowthOptions> change) {
        GrowthOptions other = new GrowthOptions();
        other.rounds = rounds;
        other.warmUp = warmUp;
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
     * The defaults, and what system properties say: {@code heapdiff.program}, {@code heapdiff.ignore}, {@code heapdiff.keepDumps},
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

    /** Rounds between two snapshots. */
    public GrowthOptions withRounds(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("rounds: " + count + ", and at least 1 is needed between two snapshots");
        }
        return with(options -> options.rounds = count);
    }

    /** Rounds before the first snapshot. */
    public GrowthOptions withWarmUp(int count) {
        return with(options -> options.warmUp = (int) notNegative(count, "warm-up rounds"));
    }

    /** A holder may grow by so many bytes from the first snapshot to the last. */
    public GrowthOptions withToleratedBytes(long bytes) {
        return with(options -> options.toleratedBytes = notNegative(bytes, "tolerated bytes"));
    }

    /** The heapdiff program; without it, the environment's {@code HEAPDIFF} and {@code PATH} are looked at. */
    public GrowthOptions withProgram(Path file) {
        Objects.requireNonNull(file);
        return with(options -> options.program = file);
    }

    /** A file of known growth, as {@code heapdiff --ignore} reads it. */
    public GrowthOptions withIgnore(Path file) {
        Objects.requireNonNull(file);
        return with(options -> options.ignore = file);
    }

    /** Whether the dumps stay, with their folder in the message. */
    public GrowthOptions withKeepDumps(boolean keep) {
        return with(options -> options.keepDumps = keep);
    }

    /** Who writes the snapshots. */
    public GrowthOptions withForking(Forking who) {
        Objects.requireNonNull(who);
        return with(options -> options.forking = who);
    }

    /** What becomes of the test when it cannot be told whether the heap grew. */
    public GrowthOptions withWhenUndecided(WhenUndecided what) {
        Objects.requireNonNull(what);
        return with(options -> options.whenUndecided = what);
    }

    /** How long heapdiff may take for one comparison, and for one forked snapshot. */
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
        throw new IllegalArgumentException("heapdiff.keepDumps is true or false, not " + text);
    }

    private static <E extends Enum<E>> E one(E[] values, String property, String text) {
        for (E each : values) {
            if (each.name().equalsIgnoreCase(text)) {
                return each;
            }
        }
        String all = Stream.of(values).map(each -> each.name().toLowerCase(Locale.ROOT)).collect(Collectors.joining(", "));
        throw new IllegalArgumentException(property + " is one of " + all + ", not " + text);
    }

    private static long notNegative(long number, String what) {
        if (number < 0) {
            throw new IllegalArgumentException(what + " cannot be negative: " + number);
        }
        return number;
    }
}
