package com.acme.billing;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Keeps invoices by tenant and month, in a map of maps of lists. In leak mode, invoices stay after they are sent. The growth is spread over
 * all tenants, so no single list is large.
 */
class BillingServer {
    private static final int INVOICES = 15_000;
    private static final int TENANTS = 60;

    static final InvoiceStore store = new InvoiceStore();

    private final Random random = new Random(9);
    private final List<Tenant> tenants = new ArrayList<>();
    private final Map<String, Double> rates = new HashMap<>();
    private long number;

    private BillingServer() {
        for (int i = 0; i < TENANTS; i++) {
            tenants.add(new Tenant("tenant-" + i));
        }
        for (int i = 0; i < 15_000; i++) {
            rates.put("rate/" + i, random.nextDouble());
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < INVOICES; i++) {
            Tenant tenant = tenants.get(random.nextInt(TENANTS));
            Invoice invoice = new Invoice(++number, tenant, random.nextInt(1_000_000));
            String month = "2024-" + (1 + random.nextInt(12));
            store.add(month, invoice);
            if (!leak) {
                store.sent(month, invoice);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BillingServer server = new BillingServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class InvoiceStore {
    private final Map<String, Map<String, List<Invoice>>> byTenant = new HashMap<>();

    private List<Invoice> list(String month, Invoice invoice) {
        return byTenant
                .computeIfAbsent(invoice.tenant.name, tenant -> new HashMap<>())
                .computeIfAbsent(month, m -> new ArrayList<>());
    }

    void add(String month, Invoice invoice) {
        list(month, invoice).add(invoice);
    }

    void sent(String month, Invoice invoice) {
        list(month, invoice).remove(invoice);
    }
}

class Tenant {
    final String name;

    Tenant(String name) {
        this.name = name;
    }
}

class Invoice {
    final long number;
    final Tenant tenant;
    final long cents;
    final String reference;
    boolean paid;

    Invoice(long number, Tenant tenant, long cents) {
        this.number = number;
        this.tenant = tenant;
        this.cents = cents;
        this.reference = "INV-" + number;
    }
}
