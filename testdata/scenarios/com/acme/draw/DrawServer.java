package com.acme.draw;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;

/** Can undo every stroke, back to the first: a deque of edits holds the content before each edit. */
class DrawServer {
    private static final int STROKES = 6_000;

    private final UndoHistory history = new UndoHistory();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < STROKES; i++) {
            history.edits.push(new Edit(++next, new byte[40], new byte[56]));
            if (!leak && history.edits.size() > 100) {
                history.edits.removeLast();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DrawServer server = new DrawServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class UndoHistory {
    final Deque<Edit> edits = new ArrayDeque<>();
}

class Edit {
    final int stroke;
    final byte[] before;
    final byte[] after;

    Edit(int stroke, byte[] before, byte[] after) {
        this.stroke = stroke;
        this.before = before;
        this.after = after;
    }
}
