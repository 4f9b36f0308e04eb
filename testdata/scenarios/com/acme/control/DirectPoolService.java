package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** A pool creates direct buffers on demand, at most 40, and reuses them. */
class DirectPoolService {
    private static final int[] NEEDED = {20, 40, 40, 30};

    private final Deque<PooledBuffer> idle = new ArrayDeque<>();

    private void work(int phase) {
        for (int round = 0; round < 10; round++) {
            List<PooledBuffer> used = new ArrayList<>();
            for (int i = 0; i < NEEDED[phase - 1]; i++) {
                used.add(idle.isEmpty() ? new PooledBuffer() : idle.pop());
            }
            used.forEach(idle::push);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        DirectPoolService service = new DirectPoolService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PooledBuffer {
    final ByteBuffer bytes = ByteBuffer.allocateDirect(65_536);
}
