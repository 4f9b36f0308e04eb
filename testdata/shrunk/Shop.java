package com.acme.shop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Keeps 2,000 more carts before each READY, until the input ends. Methods are small, so that a shrinker inlines them into their
 * callers.
 */
public class Shop {
    static final Shop shop = new Shop();

    private final Registry registry = new Registry();
    private int opened;

    static class Registry {
        private final Map<Integer, Cart> carts = new HashMap<>();
        private long opened;

        void add(Cart cart) {
            opened++;
            carts.put(cart.number, cart);
        }
    }

    static class Cart {
        final int number;
        final List<Line> lines = new ArrayList<>(2);

        Cart(int number) {
            this.number = number;
        }

        void put(int article) {
            lines.add(new Line(article));
        }
    }

    static class Line {
        final int article;
        final long[] prices = new long[8];

        Line(int article) {
            this.article = article;
        }
    }

    private void open(int count) {
        for (int i = 0; i < count; i++) {
            registry.add(filled(opened++));
        }
    }

    private Cart filled(int number) {
        Cart cart = new Cart(number);
        cart.put(number * 7);
        return cart;
    }

    public static void main(String[] args) throws Exception {
        int phase = 0;
        do {
            shop.open(2_000);
            System.out.println("READY " + ++phase);
            for (int c = System.in.read(); c != '\n'; c = System.in.read()) {
                if (c < 0) {
                    return;
                }
            }
        } while (true);
    }
}
