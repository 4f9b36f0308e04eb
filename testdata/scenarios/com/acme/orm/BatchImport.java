package com.acme.orm;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;

/** Never closes a session of an object-relational mapper. The session keeps each entity, and the state in which it was loaded. */
class BatchImport {
    private static final int ROWS = 6_000;

    private final MapperSession session = new MapperSession();
    private long next;

    private void work(boolean leak) {
        for (int i = 0; i < ROWS; i++) {
            session.load(++next);
        }
        if (!leak) {
            session.entities.clear();
            session.loaded.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BatchImport server = new BatchImport();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class MapperSession {
    final Map<Long, Customer> entities = new HashMap<>();
    final Map<Customer, Object[]> loaded = new IdentityHashMap<>();

    void load(long id) {
        Customer customer = new Customer(id, "customer " + id);
        entities.put(id, customer);
        loaded.put(customer, new Object[] {id, customer.name, customer.purchases.clone()});
    }
}

class Customer {
    final long id;
    final String name;
    final int[] purchases = new int[10];

    Customer(long id, String name) {
        this.id = id;
        this.name = name;
    }
}
