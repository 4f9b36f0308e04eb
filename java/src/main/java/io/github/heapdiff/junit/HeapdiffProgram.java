package io.github.heapdiff.junit;

import java.io.File;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** The heapdiff program and its command lines. */
final class HeapdiffProgram {
    /** Maximum size of a report in bytes. A report of 20 suspects and classes is much smaller. */
    private static final long LONGEST_REPORT = 16 << 20;

    private static final int LONGEST_COMPLAINT = 4000;

    /** The exit code of heapdiff for an unknown option. */
    private static final int WRONG_USAGE = 2;

    private static final long END_MILLIS = 2000;

    /**
     * Options with which heapdiff follows only strong references. Objects that only soft references hold are not a
     * leak, because the JVM clears soft references when memory is short.
     */
    private static final List<String> REFERENCES = List.of("--refs", "strong");

    private final Path file;
    private final GrowthOptions options;

    private HeapdiffProgram(Path file, GrowthOptions options) {
        this.file = file;
        this.options = options;
    }

    /**
     * Returns the heapdiff program: the path in the options, or else the path in the environment variable HEAPDIFF, or
     * else the program on the PATH.
     */
    static HeapdiffProgram find(GrowthOptions options) {
        return find(options, System.getenv());
    }

    static HeapdiffProgram find(GrowthOptions options, Map<String, String> environment) {
        if (options.program().isPresent()) {
            return stated(options.program().get(), "the option or system property heapdiff.program", options);
        }
        String variable = environment.getOrDefault("HEAPDIFF", "");
        if (!variable.isBlank()) {
            return stated(Path.of(variable), "the environment variable HEAPDIFF", options);
        }
        for (String folder : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path file = Path.of(folder).resolve("heapdiff");
            if (!folder.isEmpty() && Files.isRegularFile(file) && Files.isExecutable(file)) {
                return new HeapdiffProgram(file, options);
            }
        }
        throw new HeapUndecidedException(
                "heapdiff was not found: put it on the PATH, or give its path in the system property heapdiff.program"
                        + " or the environment variable HEAPDIFF");
    }

    private static HeapdiffProgram stated(Path file, String by, GrowthOptions options) {
        if (!Files.isRegularFile(file) || !Files.isExecutable(file)) {
            throw new HeapUndecidedException("heapdiff was not found: " + file + ", given by " + by + ", is not an executable file");
        }
        return new HeapdiffProgram(file.toAbsolutePath(), options);
    }

    Path file() {
        return file;
    }

    /** Lets the agent fork this JVM. The forked child writes the reachable objects to a file. If that fails, returns the reason. */
    Optional<String> dumpForked(Path dump) {
        Path complaints = dump.resolveSibling("dump.txt");
        String pid = Long.toString(ProcessHandle.current().pid());
        List<String> command = List.of(file.toString(), "dump", pid, "--fork", "--quiet", "-o", dump.toString());
        int exit;
        try {
            exit = run(command, dump.resolveSibling("dump-output.txt"), complaints);
        } catch (HeapUndecidedException e) {
            if (Thread.currentThread().isInterrupted()) {
                throw e;
            }
            return Optional.of(e.getMessage());
        }
        if (exit == 0 && Files.exists(dump)) {
            return Optional.empty();
        }
        return Optional.of("heapdiff dump --fork ended with " + exit + ": " + start(complaints));
    }

    /** Writes a summary of a dump. In {@link #compare}, each snapshot except the last can be a summary. */
    void summarize(Path dump, Path summary) {
        Path complaints = dump.resolveSibling("heapdiff.txt");
        List<String> command = new ArrayList<>(List.of(file.toString(), "summarize", "--quiet", "--progress", "never", "--no-index"));
        command.addAll(REFERENCES);
        command.addAll(List.of("-o", summary.toString(), dump.toString()));
        // With --baseline, heapdiff writes the summary faster. Earlier versions do not know this option and end with
        // WRONG_USAGE.
        List<String> faster = new ArrayList<>(command);
        faster.add("--baseline");
        Path output = dump.resolveSibling("summarize.txt");
        int exit = run(faster, output, complaints);
        if (exit == WRONG_USAGE) {
            exit = run(command, output, complaints);
        }
        if (exit != 0) {
            throw new HeapUndecidedException("heapdiff summarize ended with " + exit + ": " + start(complaints));
        }
    }

    /**
     * Compares snapshots and returns the report. The snapshots are in order of time, and the last one must be a dump.
     */
    Map<?, ?> compare(Path folder, List<Path> snapshots) {
        Path report = folder.resolve("report.json");
        Path complaints = folder.resolve("heapdiff.txt");
        List<String> command = new ArrayList<>(List.of(file.toString(), "diff", "--format", "json", "--top", "20"));
        command.addAll(REFERENCES);
        command.addAll(List.of("--quiet", "--color", "never", "--progress", "never"));
        options.ignore().ifPresent(rules -> command.addAll(List.of("--ignore", rules.toString())));
        snapshots.forEach(snapshot -> command.add(snapshot.toString()));
        int exit = run(command, report, complaints);
        if (exit != 0) {
            throw new HeapUndecidedException("heapdiff ended with " + exit + ": " + start(complaints));
        }
        return comparable(parsed(report));
    }

    /**
     * Runs the heapdiff command {@code name} on a file and returns the report. The report is written to the folder of
     * the file.
     */
    Map<?, ?> report(String name, Path input, String... more) {
        Path report = input.resolveSibling("report.json");
        Path complaints = input.resolveSibling("heapdiff.txt");
        List<String> command = new ArrayList<>(List.of(file.toString(), name, input.toString()));
        command.addAll(List.of(more));
        if (name.equals("paths")) {
            command.addAll(REFERENCES);
        }
        command.addAll(List.of("--format", "json", "--quiet", "--color", "never", "--progress", "never"));
        int exit = run(command, report, complaints);
        if (exit != 0) {
            throw new HeapUndecidedException("heapdiff " + name + " ended with " + exit + ": " + start(complaints));
        }
        Object parsed = parsed(report);
        if (parsed instanceof Map) {
            return (Map<?, ?>) parsed;
        }
        throw new HeapUndecidedException("the report of heapdiff " + name + " is not a JSON object");
    }

    private static Object parsed(Path report) {
        try {
            if (Files.size(report) > LONGEST_REPORT) {
                throw new HeapUndecidedException("heapdiff's report is too long: " + Files.size(report) + " bytes");
            }
            return new JsonReader(Files.readString(report)).read();
        } catch (IOException | JsonReader.MalformedJsonException e) {
            throw new HeapUndecidedException("heapdiff's report cannot be read: " + e.getMessage(), e);
        }
    }

    private static Map<?, ?> comparable(Object parsed) {
        if (!(parsed instanceof Map) || !"heapdiff.diff/1".equals(((Map<?, ?>) parsed).get("schema"))) {
            throw new HeapUndecidedException("heapdiff's report does not have the schema heapdiff.diff/1");
        }
        Map<?, ?> report = (Map<?, ?>) parsed;
        if (!Boolean.TRUE.equals(report.get("comparable"))) {
            throw new HeapUndecidedException("heapdiff cannot compare the dumps: " + report.get("warnings"));
        }
        return report;
    }

    private int run(List<String> command, Path output, Path errors) {
        Process process;
        try {
            process = new ProcessBuilder(command)
                    .redirectOutput(output.toFile())
                    .redirectError(Redirect.to(errors.toFile()))
                    .start();
            process.getOutputStream().close();
        } catch (IOException e) {
            throw new HeapUndecidedException("cannot run " + file + ": " + e.getMessage(), e);
        }
        try {
            if (process.waitFor(options.timeout().toMillis(), TimeUnit.MILLISECONDS)) {
                return process.exitValue();
            }
            throw new HeapUndecidedException("heapdiff took longer than " + options.timeout().toMillis() + " ms; GrowthOptions.withTimeout sets a longer limit");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new HeapUndecidedException("interrupted while heapdiff ran", e);
        } finally {
            end(process);
        }
    }

    /**
     * Stops a process. The process has {@link #END_MILLIS} to delete its temporary files and end. Then it is killed.
     */
    private static void end(Process process) {
        process.destroy();
        try {
            process.waitFor(END_MILLIS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
    }

    private static String start(Path complaints) {
        try (var in = Files.newInputStream(complaints)) {
            return new String(in.readNBytes(LONGEST_COMPLAINT), StandardCharsets.UTF_8).strip();
        } catch (IOException e) {
            return "the messages of heapdiff cannot be read: " + e.getMessage();
        }
    }
}
