package com.acme.lookup;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;

/** Has a linked map that should evict its eldest entry, but compares its limit with the wrong number. */
class LookupServer {
    private static final int LOOKUPS = 9_000;

    private AnswerCache cache = new AnswerCache();
    private int next;

    private void work(boolean leak) {
        if (!leak) {
            cache = new AnswerCache();
        }
        for (int i = 0; i < LOOKUPS; i++) {
            int question = ++next;
            cache.put(question, new Answer("question " + question));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LookupServer server = new LookupServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class AnswerCache extends LinkedHashMap<Integer, Answer> {
    private static final long serialVersionUID = 1;
    private static final int LIMIT = 5_000;
    private int evicted;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, Answer> eldest) {
        if (evicted > LIMIT) {
            evicted++;
            return true;
        }
        return false;
    }
}

class Answer {
    final String question;
    final int[] scores = new int[20];

    Answer(String question) {
        this.question = question;
    }
}
