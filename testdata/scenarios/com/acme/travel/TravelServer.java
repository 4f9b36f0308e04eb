package com.acme.travel;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Has two independent leaks: searches in a static list, and tickets in a map. */
class TravelServer {
    private static final int REQUESTS = 8_000;

    private final TicketDesk desk = new TicketDesk();
    private final Map<Integer, String> stations = new HashMap<>();
    private int number;

    private TravelServer() {
        for (int i = 0; i < 15_000; i++) {
            stations.put(i, "station " + i);
        }
    }

    private void search() {
        for (int i = 0; i < REQUESTS; i++) {
            SearchHistory.searches.add(new Search("from " + i + " to " + ++number, new long[16]));
        }
    }

    private void sell() {
        for (int i = 0; i < REQUESTS; i++) {
            desk.open.put(++number, new Ticket(number, i));
        }
    }

    private void work(boolean leak) {
        search();
        sell();
        if (!leak) {
            SearchHistory.searches.clear();
            desk.open.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TravelServer server = new TravelServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SearchHistory {
    static final List<Search> searches = new ArrayList<>();
}

class Search {
    final String route;
    final long[] departures;

    Search(String route, long[] departures) {
        this.route = route;
        this.departures = departures;
    }
}

class TicketDesk {
    final Map<Integer, Ticket> open = new HashMap<>();
}

class Ticket {
    final int number;
    final long cents;

    Ticket(int number, long cents) {
        this.number = number;
        this.cents = cents;
    }
}
