package com.acme.shop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/** Registers sessions at login. In leak mode, sessions are not removed at logout. */
class ShopServer {
    private static final int LOGINS = 5_000;

    private final Random random = new Random(1);
    private final Catalogue catalogue = new Catalogue(8_000);
    private final boolean leak;
    private long nextUser = 1;

    private ShopServer(boolean leak) {
        this.leak = leak;
    }

    private void serve() {
        for (int i = 0; i < LOGINS; i++) {
            Session session = new Session(nextUser++, "203.0.113." + random.nextInt(256));
            SessionRegistry.login(session);
            for (int n = random.nextInt(3); n >= 0; n--) {
                session.cart.add(new CartLine(catalogue.any(random), 1 + random.nextInt(4)));
            }
            if (!leak) {
                SessionRegistry.logout(session);
            }
        }
        catalogue.reprice(random);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ShopServer server = new ShopServer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            server.serve();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SessionRegistry {
    static final Map<Long, Session> sessions = new ConcurrentHashMap<>();

    static void login(Session session) {
        sessions.put(session.userId, session);
    }

    static void logout(Session session) {
        sessions.remove(session.userId);
    }
}

class Session {
    final long userId;
    final String address;
    final long created = System.nanoTime();
    final List<CartLine> cart = new ArrayList<>();

    Session(long userId, String address) {
        this.userId = userId;
        this.address = address;
    }
}

class CartLine {
    final Product product;
    final int quantity;

    CartLine(Product product, int quantity) {
        this.product = product;
        this.quantity = quantity;
    }
}

class Product {
    final String sku;
    final String title;
    final long cents;

    Product(String sku, String title, long cents) {
        this.sku = sku;
        this.title = title;
        this.cents = cents;
    }
}

/** A large map of constant size. A product is replaced when its price changes. */
class Catalogue {
    private final Map<String, Product> bySku = new HashMap<>();
    private final List<String> skus = new ArrayList<>();

    Catalogue(int size) {
        for (int i = 0; i < size; i++) {
            String sku = "SKU-" + i;
            skus.add(sku);
            bySku.put(sku, new Product(sku, "Product number " + i, 100 + i));
        }
    }

    Product any(Random random) {
        return bySku.get(skus.get(random.nextInt(skus.size())));
    }

    void reprice(Random random) {
        for (int i = 0; i < 2_000; i++) {
            Product old = any(random);
            bySku.put(old.sku, new Product(old.sku, old.title, old.cents + 1));
        }
    }
}
