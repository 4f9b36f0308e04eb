package com.acme.notes;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/** Has a weak map whose keys, the open documents, live as long as the program. The notes of each document add up. */
class NoteServer {
    private static final int DOCUMENTS = 300;
    private static final int NOTES = 12_000;

    private final List<OpenDocument> open = new ArrayList<>();
    private final NoteBook book = new NoteBook();
    private int next;

    private NoteServer() {
        for (int i = 0; i < DOCUMENTS; i++) {
            open.add(new OpenDocument("document " + i));
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < NOTES; i++) {
            OpenDocument document = open.get(++next % DOCUMENTS);
            book.notes.computeIfAbsent(document, d -> new ArrayList<>()).add(new Note(next, "note " + next));
        }
        if (!leak) {
            book.notes.values().forEach(List::clear);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        NoteServer server = new NoteServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class NoteBook {
    final Map<OpenDocument, List<Note>> notes = new WeakHashMap<>();
}

class OpenDocument {
    final String title;

    OpenDocument(String title) {
        this.title = title;
    }
}

class Note {
    final int line;
    final String text;

    Note(int line, String text) {
        this.line = line;
        this.text = text;
    }
}
