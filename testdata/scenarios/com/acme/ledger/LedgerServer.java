package com.acme.ledger;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has a linked journal. Another thread reads it slowly, again and again, also during a dump. */
class LedgerServer {
    private static final int ENTRIES = 10_000;

    private final Journal journal = new Journal();
    private int next;

    private void work(boolean leak) throws InterruptedException {
        synchronized (journal) {
            for (int i = 0; i < ENTRIES; i++) {
                journal.add(new JournalEntry(++next, "transfer " + next));
            }
            if (!leak) {
                journal.first = null;
                journal.last = null;
            }
        }
        // The auditor thread may still read an entry that was removed, which keeps all later entries alive. Wait until it starts again.
        Thread.sleep(200);
    }

    private long audit() throws InterruptedException {
        JournalEntry first = journal.first;
        JournalEntry entry = first;
        long sum = 0;
        for (int count = 1; entry != null && first == journal.first; count++) {
            sum += entry.number;
            entry = entry.next;
            if (count % 100 == 0) {
                Thread.sleep(20);
            }
        }
        return sum;
    }

    private void auditForEver() {
        try {
            while (true) {
                audit();
                Thread.sleep(5);
            }
        } catch (InterruptedException e) {
            return;
        }
    }

    private static LedgerServer started() {
        LedgerServer server = new LedgerServer();
        Thread auditor = new Thread(server::auditForEver, "auditor");
        auditor.setDaemon(true);
        auditor.start();
        return server;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LedgerServer server = started();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Journal {
    volatile JournalEntry first;
    JournalEntry last;

    void add(JournalEntry entry) {
        if (first == null) {
            first = entry;
        } else {
            last.next = entry;
        }
        last = entry;
    }
}

class JournalEntry {
    final int number;
    final String text;
    JournalEntry next;

    JournalEntry(int number, String text) {
        this.number = number;
        this.text = text;
    }
}
