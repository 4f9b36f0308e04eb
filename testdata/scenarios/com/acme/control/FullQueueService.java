package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;

/** Has a bounded queue of 9,000 letters, which is full from the second phase on. Each letter waits for its turn. */
class FullQueueService {
    private static final int[] POSTED = {4_000, 9_000, 6_000, 6_000};

    private final Queue<Letter> letters = new ArrayBlockingQueue<>(9_000);
    private int next;

    private void work(int phase) {
        for (int i = 0; i < POSTED[phase - 1]; i++) {
            Letter letter = new Letter(++next, "letter " + next);
            if (!letters.offer(letter)) {
                letters.remove();
                letters.add(letter);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FullQueueService service = new FullQueueService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Letter {
    final int number;
    final String text;

    Letter(int number, String text) {
        this.number = number;
        this.text = text;
    }
}
