package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** Keeps the last 10,000 bids by time in a skip list. New bids replace the oldest ones. */
class WindowService {
    private static final int BIDS = 14_000;

    private final NavigableMap<Long, Bid> byTime = new ConcurrentSkipListMap<>();
    private long time;

    private void work(int phase) {
        for (int i = 0; i < BIDS; i++) {
            byTime.put(++time, new Bid("bidder " + time));
            byTime.headMap(time - 10_000, true).clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WindowService service = new WindowService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Bid {
    final String bidder;

    Bid(String bidder) {
        this.bidder = bidder;
    }
}
