package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** A pool creates connections on demand, at most 60. The load rises until the pool is exhausted, and then falls. */
class PoolService {
    private static final int[] LOAD = {25, 60, 60, 40};

    private final ConnectionPool pool = new ConnectionPool();

    private void serve(int load) {
        List<Connection> used = new ArrayList<>();
        for (int i = 0; i < load; i++) {
            used.add(pool.take());
        }
        used.forEach(pool.idle::add);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PoolService service = new PoolService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve(LOAD[phase - 1]);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ConnectionPool {
    private static final int LIMIT = 60;

    final Deque<Connection> idle = new ArrayDeque<>();
    private int made;

    Connection take() {
        Connection connection = idle.poll();
        if (connection != null) {
            return connection;
        }
        if (made == LIMIT) {
            throw new IllegalStateException("no connection is free");
        }
        made++;
        return new Connection();
    }
}

class Connection {
    final byte[] in = new byte[16_384];
    final byte[] out = new byte[16_384];
}
