package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What a failed assertion says. */
final class GrowthMessage {
    private static final int MOST_SUSPECTS = 3;
    private static final int MOST_FRAMES = 10;

    private GrowthMessage() {}

    static String of(List<Suspect> growing, GrowthOptions options, Optional<Path> keptIn) {
        StringBuilder text = new StringBuilder();
        text.append(String.format(
                Locale.ROOT,
                "the heap grows with each round: %s grew by %,d bytes in %d rounds%n",
                growing.get(0).holder(),
                growing.get(0).growth(),
                2L * options.rounds()));
        growing.stream().limit(MOST_SUSPECTS).forEach(suspect -> describe(suspect, text));
        if (growing.size() > MOST_SUSPECTS) {
            text.append(String.format(Locale.ROOT, "%nand %d more%n", growing.size() - MOST_SUSPECTS));
        }
        keptIn.ifPresent(folder -> text.append(String.format("%nthe dumps are in %s%n", folder)));
        return text.toString().stripTrailing();
    }

    private static void describe(Suspect suspect, StringBuilder text) {
        text.append(String.format("%n  %s  %s%n", suspect.verdict(), suspect.holder()));
        line(text, "class", suspect.className());
        line(text, "growth", String.format(
                Locale.ROOT, "%+,d bytes, %+,d objects", suspect.growth(), suspect.objects()));
        line(text, "retained", join(suspect.retained()));
        line(text, "root", suspect.root());
        lines(text, "path", suspect.path());
        lines(text, "why", suspect.reasons());
        List<?> frames = suspect.frames();
        lines(text, "allocated", frames.subList(0, Math.min(frames.size(), MOST_FRAMES)));
    }

    /** Bytes in each snapshot. */
    private static String join(List<?> figures) {
        StringBuilder text = new StringBuilder();
        for (Object figure : figures) {
            text.append(text.length() == 0 ? "" : " -> ").append(String.format(Locale.ROOT, "%,d", figure));
        }
        return text.append(" bytes").toString();
    }

    private static void lines(StringBuilder text, String name, List<?> values) {
        String label = name;
        for (Object value : values) {
            line(text, label, String.valueOf(value));
            label = "";
        }
    }

    private static void line(StringBuilder text, String label, String value) {
        text.append(String.format("    %-9s %s%n", label, value));
    }
}
