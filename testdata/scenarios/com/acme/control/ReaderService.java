package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has a linked queue of 12,000 jobs. Another thread iterates over it all the time, also during a dump. */
class ReaderService {
    private static final int JOBS = 12_000;

    private final JobQueue queue = new JobQueue();

    private void work(int phase) throws InterruptedException {
        QueuedJob first = null;
        for (int i = 0; i < JOBS; i++) {
            first = new QueuedJob("job " + i + " of " + phase, first);
        }
        queue.first = first;
        // Wait until the reader thread no longer iterates over the previous jobs.
        Thread.sleep(200);
    }

    private void readForEver() {
        long length = 0;
        try {
            while (true) {
                int count = 0;
                QueuedJob begin = queue.first;
                for (QueuedJob job = begin; job != null && begin == queue.first; job = job.next) {
                    length += job.text.length();
                    if (++count % 100 == 0) {
                        Thread.sleep(20);
                    }
                }
                Thread.sleep(length % 2 + 5);
            }
        } catch (InterruptedException e) {
            return;
        }
    }

    private static ReaderService started() {
        ReaderService service = new ReaderService();
        Thread reader = new Thread(service::readForEver, "reader");
        reader.setDaemon(true);
        reader.start();
        return service;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ReaderService service = started();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class JobQueue {
    volatile QueuedJob first;
}

class QueuedJob {
    final String text;
    final QueuedJob next;

    QueuedJob(String text, QueuedJob next) {
        this.text = text;
        this.next = next;
    }
}
