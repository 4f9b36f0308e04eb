package com.acme.workers;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** Starts a thread for each upload, which waits for the upload's end. Nothing signals this end. */
class WorkerServer {
    private static final int UPLOADS = 60;

    private final CountDownLatch end = new CountDownLatch(1);
    private final Uploads uploads = new Uploads();
    private int next;

    private void work(boolean leak) throws InterruptedException {
        for (int i = 0; i < UPLOADS; i++) {
            Upload upload = new Upload("file " + ++next, leak ? end : new CountDownLatch(0));
            uploads.running.add(upload);
            upload.start();
            upload.started.await();
            if (!leak) {
                upload.join();
                uploads.running.remove(upload);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WorkerServer server = new WorkerServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Uploads {
    final Set<Upload> running = new HashSet<>();
}

class Upload extends Thread {
    final String file;
    final CountDownLatch started = new CountDownLatch(1);
    final CountDownLatch end;
    final byte[] block = new byte[16_384];

    Upload(String file, CountDownLatch end) {
        this.file = file;
        this.end = end;
        setDaemon(true);
    }

    @Override
    public void run() {
        started.countDown();
        try {
            end.await();
        } catch (InterruptedException e) {
            return;
        }
    }
}
