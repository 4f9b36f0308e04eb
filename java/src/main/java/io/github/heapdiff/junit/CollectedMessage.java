package io.github.heapdiff.junit;

import java.nio.file.Path;
import java.util.Optional;

/** The message about an object that was not collected. */
final class CollectedMessage {
    private CollectedMessage() {}

    /**
     * Returns the message.
     *
     * @param collections number of GCs before the dump, or 0 if the JVM ignores {@code System.gc()}; in this case, only
     *     the dump ran a GC
     * @param frame the method whose local variable holds the object, if the path begins with a local variable
     * @param allocation the stack that allocated the object or other objects of its class, or null if no stack is known
     */
    static String of(
            String type, int collections, ObjectPath path, Optional<String> frame, Allocation allocation, Optional<Path> keptIn) {
        StringBuilder text = new StringBuilder();
        String when = collections == 0 ? "by the GC of a heap dump" : "in " + collections + " GCs";
        text.append(String.format("%s was not collected %s, because this path keeps it alive:%n%n", type, when));
        GrowthMessage.line(text, "root", path.root());
        frame.ifPresent(name -> GrowthMessage.line(text, "in", name));
        GrowthMessage.lines(text, "path", path.steps());
        if (frame.isPresent()) {
            String note = "a local variable keeps its object alive until its method ends; a lambda can create the object:";
            GrowthMessage.line(text, "note", note);
            GrowthMessage.line(text, "", "HeapSnapshots.assertCollected(() -> ...)");
        }
        if (allocation == null) {
            String advice = "unknown; to see the stack, start the JVM with -XX:StartFlightRecording:settings=profile";
            GrowthMessage.line(text, "allocated", advice);
            GrowthMessage.line(text, "", "or with heapdiff's agent (-agentpath:...)");
        } else {
            GrowthMessage.lines(text, "allocated", GrowthMessage.first(allocation.frames()));
            if (!allocation.exact()) {
                GrowthMessage.line(text, "", "(probably: " + of(allocation.samples()) + " of this class)");
            }
        }
        keptIn.ifPresent(folder -> text.append(String.format("%nthe dump is in %s%n", folder)));
        return text.toString().stripTrailing();
    }

    private static String of(long samples) {
        return samples == 1 ? "the stack of 1 recorded object" : "the stack of " + samples + " recorded objects";
    }
}
