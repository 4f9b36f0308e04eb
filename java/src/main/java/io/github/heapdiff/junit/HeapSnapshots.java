package io.github.heapdiff.junit;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Dumps of this JVM in a folder of their own, which goes when this is closed or the JVM ends. All are written in one way: a child's
 * has none of the JVM's hidden threads, which would be growth beside one of the JVM's own.
 */
final class HeapSnapshots implements AutoCloseable {
    /** How long the JVM is given to clear what a collection found to be garbage. */
    private static final long SETTLE_MILLIS = 500;

    /** Folders in use: one hook for all, since each hook would stay in the heap. */
    private static final Set<Path> IN_USE = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> IN_USE.forEach(HeapSnapshots::delete), "heapdiff-dumps"));
    }

    /** Why no child of this JVM can be forked, as the first attempt found. */
    private static volatile String hindrance;

    private final Path folder;
    private final boolean keep;
    private final boolean forkedOnly;
    private final List<Path> dumps = new ArrayList<>();
    private boolean forked;

    HeapSnapshots(GrowthOptions options) {
        this.keep = options.keepDumps();
        forkedOnly = options.forking() == Forking.ALWAYS;
        forked = forkedOnly || options.forking() == Forking.AUTO && hindrance == null && HotSpot.hasAgent();
        try {
            folder = Files.createTempDirectory("heapdiff-junit-" + ProcessHandle.current().pid() + "-");
        } catch (IOException e) {
            throw new HeapUndecidedException("cannot make a folder for heap dumps: " + e, e);
        }
        if (!keep) {
            IN_USE.add(folder);
        }
    }

    /** Dumps what is reachable now. Where no further child can be forked those before go: this one is the first then. */
    void take(HeapdiffProgram program) {
        settle();
        if (forked) {
            Path dump = next();
            Optional<String> refused = forked(program, dump);
            if (refused.isEmpty()) {
                dumps.add(dump);
                return;
            }
            if (forkedOnly) {
                throw new HeapUndecidedException("no forked child wrote the heap: " + refused.get());
            }
            hindrance = refused.get();
            forked = false;
            deleteFiles(folder);
            dumps.clear();
        }
        Path dump = next();
        HotSpot.dump(dump);
        dumps.add(dump);
    }

    private Path next() {
        return folder.resolve(dumps.size() + 1 + ".hprof");
    }

    /** Has a child write what is reachable; returns why it did not. */
    private static Optional<String> forked(HeapdiffProgram program, Path dump) {
        // No collection goes before it but ours, without which cleaners would still hold what is to be cleaned.
        if (!HotSpot.collectsWhenAsked()) {
            return Optional.of("explicit collections are switched off (-XX:+DisableExplicitGC)");
        }
        return program.dumpForked(dump);
    }

    List<Path> dumps() {
        return Collections.unmodifiableList(dumps);
    }

    Path folder() {
        return folder;
    }

    /** Where the dumps are, if they stay. */
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

    /** Waits until the JVM has handed out the references that a collection cleared, and run finalizers: what they hold is garbage, too. */
    private static void settle() {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        PhantomReference<Object> sentinel = new PhantomReference<>(new Object(), queue);
        System.gc();
        try {
            // Without an answer (explicit collections are switched off) the dump's own collection has to do.
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
            System.err.println("heapdiff: cannot delete what is in " + folder + ": " + e);
        }
    }
}
