package com.acme.journal;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;

/** Keeps a chain of entries whose start is never cut off. A cache of the last 100 entries refers to its end. */
class JournalServer {
    private static final int ENTRIES = 10_000;

    private final Journal journal = new Journal();
    private final Recent recent = new Recent();
    private long number;

    private void work(boolean leak) {
        for (int i = 0; i < ENTRIES; i++) {
            Entry entry = new Entry(++number);
            journal.add(entry);
            recent.byNumber.put(entry.number, entry);
            if (!leak && number > ENTRIES) {
                journal.dropFirst();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        JournalServer server = new JournalServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Journal {
    private Entry first;
    private Entry last;

    void add(Entry entry) {
        if (last == null) {
            first = entry;
        } else {
            last.next = entry;
        }
        last = entry;
    }

    void dropFirst() {
        first = first.next;
    }
}

class Recent {
    final Map<Long, Entry> byNumber = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, com.acme.journal.Entry> eldest) {
            return size() > 100;
        }
    };
}

class Entry {
    final long number;
    final byte[] text = new byte[64];
    Entry next;

    Entry(long number) {
        this.number = number;
    }
}
