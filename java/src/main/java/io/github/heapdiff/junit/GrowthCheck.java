package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.function.Executable;

/**
 * One check whether the heap grows. It runs the work in two steps with the same number of rounds and compares
 * snapshots.
 *
 * <p>If the first step shows that the test passes, the second step is skipped. Otherwise a snapshot is taken after each
 * round of the second step. If the second step has more than {@link #MOST_MEASURED} rounds, a snapshot is taken only
 * before the last {@link #MOST_MEASURED} rounds and after each of them.
 */
final class GrowthCheck {
    /** Maximum number of rounds that are each followed by a snapshot. With more snapshots, a check of many rounds would take too long. */
    static final int MOST_MEASURED = 50;

    /** Maximum time in nanoseconds for the additional rounds of {@link #repeatPastGrowthLeft}. */
    private static final long EXTRA_NANOS = 10_000_000_000L;

    /**
     * The largest number of rounds that an earlier check with growth ran, or 0 if there was no such check. The objects
     * of that check can still be in the heap. If a later test adds the same keys to the same map, its first rounds only
     * replace entries. The map grows only after this number of rounds, when the keys are new. So a later check without
     * growth runs this number of additional rounds and measures again.
     */
    private static volatile int roundsOfGrowthLeft;

    private final GrowthOptions options;
    private final Executable work;
    private final HeapdiffProgram program;
    private final SnapshotFolder snapshots;
    /** Number of rounds since the check began. */
    private int rounds;
    /** Number of rounds that had run when the current measurement began. */
    private int measuredFrom;

    private GrowthCheck(GrowthOptions options, Executable work, HeapdiffProgram program, SnapshotFolder snapshots) {
        this.options = options;
        this.work = work;
        this.program = program;
        this.snapshots = snapshots;
    }

    /** Runs a check. Throws an {@link AssertionError} if the heap grows. */
    static void run(GrowthOptions options, Executable work) throws Throwable {
        HeapdiffProgram program = HeapdiffProgram.find(options);
        try (SnapshotFolder snapshots = new SnapshotFolder(options)) {
            int growthLeft = roundsOfGrowthLeft;
            GrowthCheck check = new GrowthCheck(options, work, program, snapshots);
            check.repeat(options.warmUp());
            List<Growth> found = check.measure();
            if (growthLeft > 0 && found.stream().noneMatch(growth -> growth.fails(options))) {
                check.repeatPastGrowthLeft(growthLeft);
                found = check.measure();
            }
            check.decide(found);
        }
    }

    /** Forgets that earlier checks left objects in the heap. Call this method when these objects are gone. */
    static void forgetGrowthLeft() {
        roundsOfGrowthLeft = 0;
    }

    /** Runs the work in one or two steps, and returns all growth above the noise limit. */
    private List<Growth> measure() throws Throwable {
        while (true) {
            snapshots.clear();
            measuredFrom = rounds;
            try {
                return measureOnce();
            } catch (SnapshotFolder.KindChangedException e) {
                // Start again, because dumps by forked children cannot be compared with dumps by the JVM. From now on
                // the JVM writes all dumps, so this exception is thrown at most once.
            }
        }
    }

    private List<Growth> measureOnce() throws Throwable {
        Path first = snapshots.dump(program);
        repeat(options.rounds());
        Path middle = snapshots.dump(program);
        Optional<List<Growth>> harmless = withoutSecondStep(first, middle);
        if (harmless.isPresent()) {
            return harmless.get();
        }
        int measured = Math.min(options.rounds(), MOST_MEASURED);
        if (measured < options.rounds()) {
            repeat(options.rounds() - measured);
            snapshots.summary(program);
        }
        for (int round = 1; round < measured; round++) {
            repeat(1);
            snapshots.summary(program);
        }
        repeat(1);
        Path last = snapshots.dump(program);
        List<Growth> found = Growth.of(program.compare(snapshots.folder(), List.of(first, middle, last)));
        if (found.stream().noneMatch(growth -> growth.suspect().growsInEachStep())) {
            return found;
        }
        roundsOfGrowthLeft = Math.max(roundsOfGrowthLeft, rounds);
        Map<?, ?> series = program.compare(snapshots.folder(), snapshots.all());
        return found.stream().map(growth -> growth.measuredIn(series, measured)).collect(Collectors.toList());
    }

    /**
     * Returns an empty {@code Optional} if a second step is needed to decide. It is needed if a suspect of the first
     * step may be a leak, or if the heap grew so much that a second step could reach the noise limit. Otherwise the
     * test passes, and the result is the growth above the noise limit.
     *
     * <p>This code is a separate method, so that {@link #measureOnce} does not hold the report in a local variable.
     * Otherwise the report would count as growth in later snapshots.
     */
    private Optional<List<Growth>> withoutSecondStep(Path first, Path middle) {
        Map<?, ?> step = program.compare(snapshots.folder(), List.of(first, middle));
        if (Suspect.mayAppear(step) || Suspect.all(step).stream().anyMatch(Suspect::growsInEachStep)) {
            return Optional.empty();
        }
        return Optional.of(Growth.of(step));
    }

    /**
     * Fails the test if some growth has no reason to be accepted. Otherwise prints the growth of at most
     * {@link GrowthMessage#MOST_SUSPECTS} holders.
     */
    private void decide(List<Growth> found) {
        int count = rounds - measuredFrom;
        List<Growth> failing = found.stream().filter(growth -> growth.fails(options)).collect(Collectors.toList());
        if (!failing.isEmpty()) {
            throw new AssertionError(GrowthMessage.of(failing, count, snapshots.keptIn()));
        }
        found.stream()
                .filter(growth -> growth.suspect().growth() > 0)
                .limit(GrowthMessage.MOST_SUSPECTS)
                .forEach(growth -> System.out.println(GrowthMessage.ofPassing(growth, count, options)));
    }

    /**
     * Runs {@code extra} more rounds, or fewer if they take longer than {@link #EXTRA_NANOS}. The caller passes the
     * value of {@link #roundsOfGrowthLeft}. An earlier check may have added the keys 1, 2, 3, ... to a map, and this
     * check adds the same keys. After the additional rounds, the keys are new, so the map grows in each round if the
     * work leaks.
     */
    private void repeatPastGrowthLeft(int extra) throws Throwable {
        long end = System.nanoTime() + EXTRA_NANOS;
        for (int round = 0; round < extra; round++) {
            if (System.nanoTime() - end > 0) {
                System.out.printf(
                        Locale.ROOT,
                        "heapdiff: this test may have growth that heapdiff cannot see, because its objects replace objects of an earlier test:"
                                + " only %,d of the %,d additional rounds that prevent this ran in 10 s; run the test in a separate JVM%n",
                        round,
                        extra);
                return;
            }
            repeat(1);
        }
    }

    private void repeat(int count) throws Throwable {
        for (int round = 0; round < count; round++) {
            work.execute();
            rounds++;
        }
    }
}
