package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The message of a failed assertion, and the lines that a passing assertion prints. */
final class GrowthMessage {
    static final int MOST_SUSPECTS = 3;
    private static final int MOST_FRAMES = 10;

    private GrowthMessage() {}

    /** Returns the message of a test that fails after {@code rounds} rounds between the first and the last snapshot. */
    static String of(List<Growth> growing, int rounds, Optional<Path> keptIn) {
        Growth first = growing.get(0);
        StringBuilder text = new StringBuilder();
        text.append(String.format(
                "the heap grows %s: %s%n",
                first.isInEachRound() ? "with each round" : "in " + first.inRounds(),
                sentence(first.suspect(), rounds)));
        growing.stream().limit(MOST_SUSPECTS).forEach(growth -> describe(growth, text));
        if (growing.size() > MOST_SUSPECTS) {
            text.append(String.format(Locale.ROOT, "%n%d more holders grow%n", growing.size() - MOST_SUSPECTS));
        }
        keptIn.ifPresent(folder -> text.append(String.format("%nthe dumps are in %s%n", folder)));
        return text.toString().stripTrailing();
    }

    /** Returns the line that a test prints if it passes in spite of this growth. */
    static String ofPassing(Growth growth, int rounds, GrowthOptions options) {
        return String.format(
                "heapdiff: the test passes, but %s: %s",
                sentence(growth.suspect(), rounds), growth.excuse(options).orElseThrow());
    }

    private static String sentence(Suspect suspect, int rounds) {
        return String.format(Locale.ROOT, "%s grew by %,d bytes in %,d rounds", suspect.holder(), suspect.growth(), rounds);
    }

    private static void describe(Growth growth, StringBuilder text) {
        Suspect suspect = growth.suspect();
        text.append(String.format("%n  %s  %s%n", suspect.verdict(), suspect.holder()));
        line(text, "class", suspect.className());
        line(text, "growth", String.format(
                Locale.ROOT, "%+,d bytes, %+,d objects", suspect.growth(), suspect.objects()));
        line(text, "rounds", "grew in " + growth.inRounds());
        line(text, "retained", join(suspect.retained()));
        line(text, "root", suspect.root());
        lines(text, "path", suspect.path());
        lines(text, "why", suspect.reasons());
        lines(text, "allocated", first(suspect.frames()));
    }

    /** Returns at most the first {@link #MOST_FRAMES} frames of a stack. */
    static List<?> first(List<?> frames) {
        return frames.subList(0, Math.min(frames.size(), MOST_FRAMES));
    }

    /** Formats the retained bytes of all snapshots as one line. */
    private static String join(List<?> figures) {
        StringBuilder text = new StringBuilder();
        for (Object figure : figures) {
            text.append(text.length() == 0 ? "" : " -> ").append(String.format(Locale.ROOT, "%,d", figure));
        }
        return text.append(" bytes").toString();
    }

    static void lines(StringBuilder text, String name, List<?> values) {
        String label = name;
        for (Object value : values) {
            line(text, label, String.valueOf(value));
            label = "";
        }
    }

    static void line(StringBuilder text, String label, String value) {
        text.append(String.format("    %-9s %s%n", label, value));
    }
}
