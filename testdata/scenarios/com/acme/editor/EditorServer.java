package com.acme.editor;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** A document holds its panes by weak references, but the task that closes a pane holds it strongly. */
class EditorServer {
    private static final int PANES = 5_000;

    private final Draft draft = new Draft();
    private final CloseTasks tasks = new CloseTasks();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < PANES; i++) {
            Pane pane = new Pane("pane " + ++next);
            draft.panes.add(new WeakReference<>(pane));
            tasks.onExit.add(() -> pane.marks[0]++);
            if (!leak) {
                tasks.onExit.clear();
            }
        }
        System.gc();
        draft.panes.removeIf(pane -> !leak || pane.get() == null);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        EditorServer server = new EditorServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Draft {
    final List<WeakReference<Pane>> panes = new ArrayList<>();
}

class CloseTasks {
    final List<Runnable> onExit = new ArrayList<>();
}

class Pane {
    final String title;
    final int[] marks = new int[30];

    Pane(String title) {
        this.title = title;
    }
}
