package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Has a pool of 200 buffers. Workers use most of them at the first dump, and return them gradually. */
class LentBufferService {
    private static final int BUFFERS = 200;
    private static final int[] LENT = {180, 120, 60, 10};

    private final Deque<LentBuffer> pool = new ArrayDeque<>();
    private final List<LentBuffer> lent = new ArrayList<>();

    private LentBufferService() {
        for (int i = 0; i < BUFFERS; i++) {
            lent.add(new LentBuffer());
        }
    }

    private void work(int phase) {
        while (lent.size() > LENT[phase - 1]) {
            pool.add(lent.remove(lent.size() - 1));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LentBufferService service = new LentBufferService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class LentBuffer {
    final byte[] bytes = new byte[16_384];
}
