package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;

/** Has a cache that evicts the eldest of 12,000 entries. The cache is full at the first dump, and each phase replaces two thirds. */
class FullCacheService {
    private static final int ANSWERS = 8_000;

    private final AnswerStore store = new AnswerStore();
    private int next;

    private void work(int phase) {
        for (int i = 0; i < (phase == 1 ? ANSWERS * 2 : ANSWERS); i++) {
            store.put(++next, new StoredAnswer("answer " + next));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FullCacheService service = new FullCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class AnswerStore extends LinkedHashMap<Integer, StoredAnswer> {
    private static final long serialVersionUID = 1;
    private static final int LIMIT = 12_000;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, StoredAnswer> eldest) {
        return size() > LIMIT;
    }
}

class StoredAnswer {
    final String text;

    StoredAnswer(String text) {
        this.text = text;
    }
}
