package io.github.heapdiff.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A new folder with dumps and summaries of this JVM. {@link #close} or the end of the JVM deletes the folder, unless
 * the options keep the dumps.
 *
 * <p>Either forked children write all dumps, or the JVM writes all dumps. The two kinds are not mixed, because a child's dump lacks the
 * hidden threads of the JVM. In a later dump by the JVM, these threads would count as growth.
 */
final class SnapshotFolder implements AutoCloseable {
    /**
     * Maximum time to wait after a GC until the JVM has enqueued cleared references, and then again until it has run
     * finalizers.
     */
    private static final long SETTLE_MILLIS = 500;

    private static final String DUMP = ".hprof";
    private static final String SUMMARY = ".heap";

    /**
     * Folders to delete when the JVM ends. One shutdown hook deletes all of them, because each hook stays in the heap.
     */
    private static final Set<Path> IN_USE = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> IN_USE.forEach(SnapshotFolder::delete), "heapdiff-dumps"));
    }

    /** The reason why no child of this JVM can be forked, or null. The first failed attempt sets it. */
    private static volatile String hindrance;

    private final Path folder;
    private final boolean keep;
    private final boolean forkedOnly;
    /** Number of dumps so far. */
    private int count;
    private boolean forked;

    SnapshotFolder(GrowthOptions options) {
        this.keep = options.keepDumps();
        forkedOnly = options.forking() == Forking.ALWAYS;
        forked = forkedOnly || options.forking() == Forking.AUTO && hindrance == null && HotSpot.hasAgent();
        try {
            folder = Files.createTempDirectory("heapdiff-junit-" + ProcessHandle.current().pid() + "-");
        } catch (IOException e) {
            throw new HeapUndecidedException("cannot create a folder for heap dumps: " + e, e);
        }
        if (!keep) {
            IN_USE.add(folder);
        }
    }

    /**
     * Writes a dump of all reachable objects, and returns its file.
     *
     * @throws KindChangedException if forked children wrote the earlier dumps, and no further child can be forked
     */
    Path dump(HeapdiffProgram program) {
        settle();
        Path dump = file(++count, DUMP);
        if (forked) {
            Optional<String> refused = forked(program, dump);
            if (refused.isEmpty()) {
                return dump;
            }
            if (forkedOnly) {
                throw new HeapUndecidedException("no forked child could write the heap dump: " + refused.get());
            }
            hindrance = refused.get();
            forked = false;
            if (count > 1) {
                throw new KindChangedException();
            }
        }
        HotSpot.dump(dump);
        return dump;
    }

    /** Writes a summary of all reachable objects. The summary can be compared like a dump, and is much smaller. */
    void summary(HeapdiffProgram program) {
        Path dump = dump(program);
        program.summarize(dump, file(count, SUMMARY));
        try {
            Files.delete(dump);
        } catch (IOException e) {
            throw new HeapUndecidedException("cannot delete " + dump + ": " + e, e);
        }
    }

    /** Returns all snapshots, oldest first. This object stores no list of files, because the list would count as growth of the heap. */
    List<Path> all() {
        return IntStream.rangeClosed(1, count)
                .mapToObj(number -> Files.exists(file(number, DUMP)) ? file(number, DUMP) : file(number, SUMMARY))
                .collect(Collectors.toList());
    }

    private Path file(int number, String extension) {
        return folder.resolve(number + extension);
    }

    /** Deletes all snapshots. */
    void clear() {
        deleteFiles(folder);
        count = 0;
    }

    /**
     * Thrown if forked children wrote the earlier dumps, but no child can write the next dump. Then only the JVM itself
     * can write it.
     */
    static final class KindChangedException extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** Lets a forked child write a dump of the reachable objects. If that fails, returns the reason. */
    private static Optional<String> forked(HeapdiffProgram program, Path dump) {
        // A fork needs an explicit GC before it. Without this GC, cleaners still hold objects that are otherwise unreachable.
        if (!HotSpot.collectsWhenAsked()) {
            return Optional.of("explicit GC is disabled (-XX:+DisableExplicitGC)");
        }
        return program.dumpForked(dump);
    }

    Path folder() {
        return folder;
    }

    /** Returns the folder of the dumps, if the options keep the dumps. */
    Optional<Path> keptIn() {
        return keep ? Optional.of(folder) : Optional.empty();
    }

    @Override
    public void close() {
        if (!keep) {
            delete(folder);
            IN_USE.remove(folder);
        }
    }

    /**
     * Runs a GC, and waits until the JVM has enqueued the cleared references and has run finalizers. Until then,
     * objects that wait for a cleaner or a finalizer stay in the heap.
     */
    static void settle() {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        PhantomReference<Object> sentinel = new PhantomReference<>(new Object(), queue);
        System.gc();
        try {
            // If explicit GC is disabled, this call usually waits for the maximum time. The JVM runs a GC anyway when
            // it writes the dump.
            queue.remove(SETTLE_MILLIS);
            long until = System.nanoTime() + SETTLE_MILLIS * 1_000_000;
            while (ManagementFactory.getMemoryMXBean().getObjectPendingFinalizationCount() > 0 && System.nanoTime() < until) {
                Thread.sleep(5);
            }
            Thread.sleep(5);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new HeapUndecidedException("interrupted before a snapshot", e);
        } finally {
            sentinel.clear();
        }
    }

    private static void delete(Path folder) {
        deleteFiles(folder);
        try {
            Files.deleteIfExists(folder);
        } catch (IOException e) {
            System.err.println("heapdiff: cannot delete " + folder + ": " + e);
        }
    }

    private static void deleteFiles(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.deleteIfExists(file);
            }
        } catch (IOException | UncheckedIOException e) {
            System.err.println("heapdiff: cannot delete the files in " + folder + ": " + e);
        }
    }
}
