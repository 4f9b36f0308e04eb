package com.acme.dictionary;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Keeps each term that users look up for ever. An import looks up many terms at once. */
class DictionaryServer {
    private static final int[] TERMS = {200, 84_000, 4_000};

    private final Dictionary dictionary = new Dictionary();
    private int number;

    private void work(boolean leak, int phase) {
        int terms = leak ? TERMS[phase - 1] : 200;
        for (int i = 0; i < terms; i++) {
            int term = leak ? ++number : i;
            dictionary.terms.computeIfAbsent("term " + term, Term::new);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DictionaryServer server = new DictionaryServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"), phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Dictionary {
    final Map<String, Term> terms = new HashMap<>();
}

class Term {
    final String text;
    final long[] counts = new long[4];

    Term(String text) {
        this.text = text;
    }
}
