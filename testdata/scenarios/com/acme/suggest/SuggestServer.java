package com.acme.suggest;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Learns search terms in its own trie. In leak mode, terms are never removed. */
class SuggestServer {
    private static final int TERMS = 3_000;
    private static final int LENGTH = 7;

    private final TermIndex index = new TermIndex();
    private final Map<Integer, String> articles = new HashMap<>();
    private final Random random = new Random(6);

    private SuggestServer() {
        for (int i = 0; i < 15_000; i++) {
            articles.put(i, "article " + i);
        }
    }

    private void search(boolean leak) {
        for (int i = 0; i < TERMS; i++) {
            StringBuilder term = new StringBuilder();
            for (int n = 0; n < LENGTH; n++) {
                term.append((char) ('a' + random.nextInt(26)));
            }
            index.learn(term);
        }
        if (!leak) {
            index.forgetAll();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SuggestServer server = new SuggestServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.search(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TermIndex {
    private TermNode root = new TermNode();

    void learn(CharSequence term) {
        TermNode node = root;
        for (int i = 0; i < term.length(); i++) {
            node = node.children.computeIfAbsent(term.charAt(i), c -> new TermNode());
        }
        node.searches++;
    }

    void forgetAll() {
        root = new TermNode();
    }
}

class TermNode {
    final Map<Character, TermNode> children = new TreeMap<>();
    int searches;
}
