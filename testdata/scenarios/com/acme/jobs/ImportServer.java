package com.acme.jobs;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/**
 * Every import registers a clean-up for shutdown. The lambda captures the import and all its rows. In leak mode, the clean-up is not
 * deregistered when the import is done.
 */
class ImportServer {
    private static final int IMPORTS = 3_000;

    private final Map<Long, String> index = new HashMap<>();

    private ImportServer() {
        for (long i = 0; i < 20_000; i++) {
            index.put(i, "document " + i);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < IMPORTS; i++) {
            ImportJob job = new ImportJob("feed-" + i + ".csv");
            Runnable cleanUp = job.start();
            index.put((long) i, "document " + i + " from " + job.rows.length + " rows");
            if (!leak) {
                ShutdownTasks.pending.remove(cleanUp);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ImportServer server = new ImportServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ShutdownTasks {
    static final Deque<Runnable> pending = new ArrayDeque<>();
}

class ImportJob {
    final String file;
    final String[] rows = new String[8];
    private boolean closed;

    ImportJob(String file) {
        this.file = file;
    }

    Runnable start() {
        for (int i = 0; i < rows.length; i++) {
            rows[i] = file + " row " + i;
        }
        Runnable cleanUp = () -> closed = true;
        ShutdownTasks.pending.addLast(cleanUp);
        return cleanUp;
    }
}
