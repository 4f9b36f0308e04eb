package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/** Keeps soft values. Their references are enqueued when they are cleared, so that entries are removed, too. Memory is ample. */
class QueuedSoftService {
    private static final int PAGES = 1_000;

    private final Map<Integer, SoftPage> pages = new HashMap<>();
    private final ReferenceQueue<byte[]> cleared = new ReferenceQueue<>();
    private int next;

    private void work(int phase) {
        for (Reference<?> page = cleared.poll(); page != null; page = cleared.poll()) {
            pages.remove(((SoftPage) page).number);
        }
        for (int i = 0; i < PAGES; i++) {
            pages.put(++next, new SoftPage(next, cleared));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        QueuedSoftService service = new QueuedSoftService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SoftPage extends SoftReference<byte[]> {
    final int number;

    SoftPage(int number, ReferenceQueue<byte[]> queue) {
        super(new byte[4_096], queue);
        this.number = number;
    }
}
