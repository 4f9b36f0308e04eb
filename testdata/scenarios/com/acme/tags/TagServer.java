package com.acme.tags;

import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.ListMultimap;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Keeps articles by tag in a Guava multimap. */
class TagServer {
    private static final int ARTICLES = 8_000;

    private final TagIndex index = new TagIndex();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < ARTICLES; i++) {
            index.byTag.put("tag " + ++next % 200, new Article(next, "article " + next));
        }
        if (!leak) {
            index.byTag.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TagServer server = new TagServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TagIndex {
    final ListMultimap<String, Article> byTag = ArrayListMultimap.create();
}

class Article {
    final int number;
    final String title;

    Article(int number, String title) {
        this.number = number;
        this.title = title;
    }
}
