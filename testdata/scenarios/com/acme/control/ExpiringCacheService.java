package com.acme.control;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Tickets expire two phases after they are issued, by a clock that the program sets. Their number is constant from the second phase on. */
class ExpiringCacheService {
    private static final int TICKETS = 6_000;

    private final AtomicLong hours = new AtomicLong();
    private final Cache<Long, IssuedTicket> tickets = Caffeine.newBuilder()
            .expireAfterWrite(90, TimeUnit.MINUTES)
            .ticker(() -> TimeUnit.HOURS.toNanos(hours.get()))
            .executor(Runnable::run)
            .build();
    private long next;

    private void work(int phase) {
        hours.set(phase);
        for (int i = 0; i < TICKETS; i++) {
            tickets.put(++next, new IssuedTicket("passenger " + next));
        }
        tickets.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ExpiringCacheService service = new ExpiringCacheService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class IssuedTicket {
    final String passenger;

    IssuedTicket(String passenger) {
        this.passenger = passenger;
    }
}
