package io.github.heapdiff.junit;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** A suspect, and the number of rounds in which its content grew. */
final class Growth {
    private final Suspect suspect;
    /** Number of measured rounds in which the content grew. */
    private final int growing;
    /** Number of measured rounds, or 0 if there are none. A round is measured if a snapshot was taken directly before and after it. */
    private final int measured;

    Growth(Suspect suspect, int growing, int measured) {
        this.suspect = suspect;
        this.growing = growing;
        this.measured = measured;
    }

    /** Returns the growth of all suspects of a report. In the result, the number of measured rounds is 0. */
    static List<Growth> of(Map<?, ?> report) {
        return Suspect.all(report).stream().map(suspect -> new Growth(suspect, 0, 0)).collect(Collectors.toList());
    }

    /**
     * Returns a copy that also contains in how many of the last {@code rounds} rounds the content grew. {@code report}
     * compares snapshots. One round ran between consecutive snapshots of the last {@code rounds + 1}.
     */
    Growth measuredIn(Map<?, ?> report, int rounds) {
        return new Growth(suspect, suspect.growingRounds(report, rounds), rounds);
    }

    /** True if the test fails because of this growth. */
    boolean fails(GrowthOptions options) {
        return excuse(options).isEmpty();
    }

    /**
     * Returns the reason why the test passes in spite of this growth. Empty if the test fails because of this growth.
     */
    Optional<String> excuse(GrowthOptions options) {
        Optional<String> ofSteps = suspect.excuse();
        if (ofSteps.isPresent()) {
            return ofSteps;
        }
        // Allow a tiny rounding error, because shares such as 0.1 have no exact binary value.
        if (growing + 1e-9 < options.minGrowingShare() * measured) {
            return Optional.of(String.format(
                    Locale.ROOT, "it grew in only %s, but minGrowingShare is %s", inRounds(), options.minGrowingShare()));
        }
        if (suspect.growth() <= options.toleratedBytes()) {
            return Optional.of(String.format(Locale.ROOT, "the growth is at most toleratedBytes (%,d)", options.toleratedBytes()));
        }
        return Optional.empty();
    }

    /** Returns the growing rounds in words, such as "49 of 50 measured rounds". */
    String inRounds() {
        return String.format(Locale.ROOT, "%,d of %,d measured rounds", growing, measured);
    }

    boolean isInEachRound() {
        return growing == measured;
    }

    Suspect suspect() {
        return suspect;
    }
}
