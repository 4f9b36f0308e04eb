package io.github.heapdiff.junit;

import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One check that an object is collected. */
final class CollectedCheck {
    /** Maximum number of GCs before the dump. Other threads may need some time to release the object. */
    private static final int MOST_GCS = 6;

    private static final long FIRST_PAUSE_MILLIS = 50;

    /** The argument with which {@code heapdiff paths} finds the object of the check: the referent of {@link #probe}. */
    private static final String SELECTOR = Probe.class.getName() + ".referent";

    /** Maximum number of objects on a path in a message. */
    private static final int MOST_LINES = 100;

    /**
     * Refers to the object of the check, so that heapdiff finds the object in the dump. Only one check runs at a time.
     */
    private static volatile Probe probe;

    private CollectedCheck() {}

    /** A separate class of weak references, so that {@link #SELECTOR} selects no object of the program. */
    private static final class Probe extends WeakReference<Object> {
        Probe(Object referent) {
            super(referent);
        }
    }

    /**
     * Throws an {@link AssertionError} if the object stays reachable. This method must not store the object in a
     * variable.
     */
    static void run(GrowthOptions options, WeakReference<?> reference) {
        int collections = collect(reference);
        if (reference.get() == null) {
            return;
        }
        HeapdiffProgram program = HeapdiffProgram.find(options);
        try (SnapshotFolder snapshots = new SnapshotFolder(options)) {
            probe = new Probe(reference.get());
            Path dump = snapshots.dump(program);
            if (reference.get() == null) {
                return;
            }
            String type = type(reference.get());
            ObjectPath path = ObjectPath.of(program.report("paths", dump, SELECTOR, "--top", String.valueOf(MOST_LINES)));
            if (path.isEmpty()) {
                System.out.println("heapdiff: the test passes, but " + type + " was not collected: only soft references hold the object");
                return;
            }
            Allocation allocation = sampled(program, dump, path, type).or(() -> recorded(program, snapshots.folder(), type)).orElse(null);
            throw new AssertionError(CollectedMessage.of(
                    type, collections, path, frame(program, dump, path), allocation, snapshots.keptIn()));
        } finally {
            probe = null;
        }
    }

    /**
     * Runs GCs until the object is collected, but not more than {@link #MOST_GCS}. Returns the number of GCs, or 0 if the
     * JVM ignores requests for a GC.
     */
    private static int collect(WeakReference<?> reference) {
        int count = 0;
        long pause = FIRST_PAUSE_MILLIS;
        while (reference.get() != null && count < MOST_GCS) {
            if (count > 0) {
                try {
                    Thread.sleep(pause);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new HeapUndecidedException("interrupted while waiting for a GC", e);
                }
                pause *= 2;
            }
            SnapshotFolder.settle();
            count++;
        }
        return HotSpot.collectsWhenAsked() ? count : 0;
    }

    private static String type(Object object) {
        return object == null ? "the object" : object.getClass().getTypeName();
    }

    /** If a local variable holds the object, returns the method of this variable. */
    private static Optional<String> frame(HeapdiffProgram program, Path dump, ObjectPath path) {
        return path.local().flatMap(id -> {
            String sql = "select f.class || '.' || f.method || '(' || coalesce(f.file, '') || coalesce(':' || f.line, '') || ')' as frame"
                    + " from roots r join frames f on r.thread_serial = f.thread_serial and r.depth = f.depth where r.id = " + id
                    + " order by f.depth limit 1";
            return row(program, dump, sql).map(row -> String.valueOf(row.get(0)));
        });
    }

    /**
     * Returns the stack that allocated the object, if the agent sampled the object. Otherwise returns the stack with
     * the most samples of the object's class, if there is one. The dump contains the samples.
     */
    private static Optional<Allocation> sampled(HeapdiffProgram program, Path dump, ObjectPath path, String type) {
        String isIt = path.object().map(id -> "coalesce(max(id = " + id + "), 0)").orElse("0");
        String sql = "select stack, count(*) as samples, " + isIt + " as is_it from samples where class = '"
                + type.replace("'", "''") + "' and id is not null and not is_definition"
                + " group by stack order by is_it desc, samples desc limit 1";
        return row(program, dump, sql).map(row -> new Allocation(
                List.of(String.valueOf(row.get(0)).split("; ")), number(row.get(1)), number(row.get(2)) > 0));
    }

    private static Optional<List<?>> row(HeapdiffProgram program, Path dump, String sql) {
        List<?> rows = ObjectPath.list(program.report("query", dump, sql).get("rows"));
        return rows.stream().findFirst().map(ObjectPath::list).filter(row -> !row.isEmpty());
    }

    /**
     * If Flight Recorder runs in this JVM, returns the first stack that {@code heapdiff sites} lists for the class. If
     * there is none, returns the first stack that {@code heapdiff sites --allocated} lists for the class.
     */
    private static Optional<Allocation> recorded(HeapdiffProgram program, Path folder, String type) {
        Path recording = folder.resolve("recording.jfr");
        if (!HotSpot.saveRecording(recording) || !Files.exists(recording)) {
            return Optional.empty();
        }
        return stackOf(program.report("sites", recording), type)
                .or(() -> stackOf(program.report("sites", recording, "--allocated"), type));
    }

    private static Optional<Allocation> stackOf(Map<?, ?> report, String type) {
        return ObjectPath.list(report.get("stacks")).stream()
                .map(stack -> (Map<?, ?>) stack)
                .filter(stack -> type.equals(stack.get("class")))
                .findFirst()
                .map(stack -> new Allocation(ObjectPath.list(stack.get("frames")), number(stack.get("samples")), false));
    }

    private static long number(Object value) {
        return value instanceof Long ? (Long) value : 0;
    }
}
