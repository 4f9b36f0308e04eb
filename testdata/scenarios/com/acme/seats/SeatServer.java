package com.acme.seats;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has its own hash table class with three instances. One of them only adds entries. */
class SeatServer {
    private static final int BOOKINGS = 8_000;

    private final Theatre theatre = new Theatre();
    private long next;

    private SeatServer() {
        for (int i = 0; i < 3_000; i++) {
            theatre.seats.put(i, "seat " + i);
            theatre.prices.put(i, i * 10L);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < BOOKINGS; i++) {
            theatre.bookings.put(++next, new SeatBooking(next, "guest " + next));
        }
        if (!leak) {
            theatre.bookings.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SeatServer server = new SeatServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Theatre {
    final LongTable<String> seats = new LongTable<>();
    final LongTable<Long> prices = new LongTable<>();
    final LongTable<SeatBooking> bookings = new LongTable<>();
}

/** Uses open addressing. Single keys cannot be removed. */
class LongTable<V> {
    private long[] keys = new long[16];
    private Object[] values = new Object[16];
    private int size;

    void put(long key, V value) {
        if (size * 2 >= keys.length) {
            long[] oldKeys = keys;
            Object[] oldValues = values;
            keys = new long[oldKeys.length * 2];
            values = new Object[oldKeys.length * 2];
            size = 0;
            for (int i = 0; i < oldKeys.length; i++) {
                if (oldValues[i] != null) {
                    insert(oldKeys[i], oldValues[i]);
                }
            }
        }
        insert(key, value);
    }

    private void insert(long key, Object value) {
        int at = (int) (key * 0x9E3779B9L >>> 7) & keys.length - 1;
        while (values[at] != null && keys[at] != key) {
            at = at + 1 & keys.length - 1;
        }
        size += values[at] == null ? 1 : 0;
        keys[at] = key;
        values[at] = value;
    }

    void clear() {
        keys = new long[16];
        values = new Object[16];
        size = 0;
    }
}

class SeatBooking {
    final long number;
    final String guest;

    SeatBooking(long number, String guest) {
        this.number = number;
        this.guest = guest;
    }
}
