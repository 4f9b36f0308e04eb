package com.acme.crm;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** Keeps customers in two static indexes, neither of which dominates them. In leak mode, customers are removed from neither. */
class CrmServer {
    private static final int CUSTOMERS = 8_000;

    private final Map<Integer, String> regions = new HashMap<>();
    private long number;

    private CrmServer() {
        for (int i = 0; i < 15_000; i++) {
            regions.put(i, "region " + i);
        }
    }

    private void register(boolean leak) {
        for (int i = 0; i < CUSTOMERS; i++) {
            Customer customer = new Customer(++number, "customer-" + number + "@example.org");
            CustomersByNumber.index.put(customer.number, customer);
            CustomersByMail.index.put(customer.mail, customer);
            if (!leak) {
                CustomersByNumber.index.remove(customer.number);
                CustomersByMail.index.remove(customer.mail);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        CrmServer server = new CrmServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.register(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CustomersByNumber {
    static final Map<Long, Customer> index = new HashMap<>();
}

class CustomersByMail {
    static final Map<String, Customer> index = new TreeMap<>();
}

class Customer {
    final long number;
    final String mail;
    final int[] purchases = new int[12];

    Customer(long number, String mail) {
        this.number = number;
        this.mail = mail;
    }
}
