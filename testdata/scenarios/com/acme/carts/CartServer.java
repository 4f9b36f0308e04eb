package com.acme.carts;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/** Keeps carts in a hash set. Their hash code depends on their content, so a changed cart is not found and not removed. */
class CartServer {
    private static final int CARTS = 10_000;

    private final OpenCarts open = new OpenCarts();
    private final Map<Integer, String> articles = new HashMap<>();
    private long number;

    private CartServer() {
        for (int i = 0; i < 15_000; i++) {
            articles.put(i, "article " + i);
        }
    }

    private void shop(boolean leak) {
        for (int i = 0; i < CARTS; i++) {
            Cart cart = new Cart(++number, "customer " + number);
            open.carts.add(cart);
            if (leak) {
                cart.cents += 1_000 + i;
            }
            open.carts.remove(cart);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        CartServer server = new CartServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.shop(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class OpenCarts {
    final Set<Cart> carts = new HashSet<>();
}

class Cart {
    final long number;
    final String customer;
    long cents;

    Cart(long number, String customer) {
        this.number = number;
        this.customer = customer;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Cart && ((Cart) other).number == number && ((Cart) other).cents == cents;
    }

    @Override
    public int hashCode() {
        return Objects.hash(number, cents);
    }
}
