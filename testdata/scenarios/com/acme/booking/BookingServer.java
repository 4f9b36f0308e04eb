package com.acme.booking;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Starts a virtual thread for each booking. A semaphore allows few of them to call the backend at the same time. In leak mode, a failure
 * does not release the permit, so every later booking waits for ever. JDK 21 and later.
 */
class BookingServer {
    private static final int BOOKINGS = 2_500;

    private final Backend backend;
    private final Method start;
    private final Map<Integer, String> hotels = new HashMap<>();
    private int started;

    private BookingServer(boolean leak) throws ReflectiveOperationException {
        backend = new Backend(leak);
        // Uses reflection, because the program is compiled for JDK 17, which has no virtual threads.
        start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < 15_000; i++) {
            hotels.put(i, "hotel " + i);
        }
    }

    private void book() throws Exception {
        for (int i = 0; i < BOOKINGS; i++) {
            start.invoke(null, new Booking(++started, backend));
        }
        while (backend.done.get() + backend.permits.getQueueLength() < started) {
            Thread.sleep(5);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        BookingServer server = new BookingServer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            server.book();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Backend {
    final Semaphore permits = new Semaphore(8);
    final AtomicInteger done = new AtomicInteger();
    private final boolean leak;

    Backend(boolean leak) {
        this.leak = leak;
    }

    void ask(Booking booking) {
        permits.acquireUninterruptibly();
        boolean failed = booking.number % 10 == 0;
        if (!failed || !leak) {
            permits.release();
        }
        done.incrementAndGet();
    }
}

class Booking implements Runnable {
    final int number;
    private final Backend backend;
    private final byte[] request = new byte[200];

    Booking(int number, Backend backend) {
        this.number = number;
        this.backend = backend;
    }

    @Override
    public void run() {
        backend.ask(this);
    }
}
