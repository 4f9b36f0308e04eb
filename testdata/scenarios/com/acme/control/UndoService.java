package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;

/** Can undo at most 5,000 steps. The deque of steps is full at the first dump, and its content is replaced. */
class UndoService {
    private static final int STEPS = 7_000;

    private final Deque<UndoStep> steps = new ArrayDeque<>();
    private int next;

    private void work(int phase) {
        for (int i = 0; i < STEPS; i++) {
            steps.push(new UndoStep(++next, "step " + next));
            if (steps.size() > 5_000) {
                steps.removeLast();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        UndoService service = new UndoService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class UndoStep {
    final int number;
    final String text;

    UndoStep(int number, String text) {
        this.number = number;
        this.text = text;
    }
}
