package com.acme.orders;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

/** Takes connections from a pool and does not return them, so the pool creates new ones. The pool keeps all that it handed out. */
class OrderServer {
    private static final int ORDERS = 300;

    private final DatabasePool pool = new DatabasePool();

    private void work(boolean leak) {
        for (int i = 0; i < ORDERS; i++) {
            DatabaseConnection connection = pool.take();
            connection.statement[0]++;
            if (!leak) {
                pool.give(connection);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        OrderServer server = new OrderServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class DatabasePool {
    private final Deque<DatabaseConnection> idle = new ArrayDeque<>();
    private final Set<DatabaseConnection> taken = new HashSet<>();

    DatabaseConnection take() {
        DatabaseConnection connection = idle.isEmpty() ? new DatabaseConnection() : idle.pop();
        taken.add(connection);
        return connection;
    }

    void give(DatabaseConnection connection) {
        taken.remove(connection);
        idle.push(connection);
    }
}

class DatabaseConnection {
    final byte[] statement = new byte[4_096];
    final long[] results = new long[256];
}
