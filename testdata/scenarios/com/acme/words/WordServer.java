package com.acme.words;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Interns strings in its own table, which never drops any. No two strings are equal. */
class WordServer {
    private static final int WORDS = 12_000;

    private final Map<String, Integer> counts = new HashMap<>();
    private long next;

    private void work(boolean leak) {
        for (int i = 0; i < WORDS; i++) {
            String word = UniqueTexts.of("request " + ++next + " of customer " + next % 77);
            counts.merge("length " + word.length(), 1, Integer::sum);
        }
        if (!leak) {
            UniqueTexts.known.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WordServer server = new WordServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class UniqueTexts {
    static final ConcurrentMap<String, String> known = new ConcurrentHashMap<>();

    static String of(String text) {
        String first = known.putIfAbsent(text, text);
        return first == null ? text : first;
    }
}
