package com.acme.library;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Has a cache of covers that fills in the first two phases, and then keeps its size. In leak mode, loans also stay after the book is
 * returned: fewer bytes than the cache at first, but more with every phase.
 */
class LibraryServer {
    private static final int COVERS = 1_500;
    private static final int LOANS = 6_000;

    private final CoverCache covers = new CoverCache();
    private final LoanDesk desk = new LoanDesk();
    private int cover;
    private long loan;

    private void show() {
        for (int i = 0; i < COVERS; i++) {
            covers.put(++cover, new Cover());
        }
    }

    private void lend(boolean leak) {
        for (int i = 0; i < LOANS; i++) {
            Loan taken = new Loan(++loan, "reader " + i);
            desk.loans.put(taken.number, taken);
            if (!leak) {
                desk.loans.remove(taken.number);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        LibraryServer server = new LibraryServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.show();
            server.lend(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CoverCache extends LinkedHashMap<Integer, Cover> {
    private static final long serialVersionUID = 1;
    private static final int LIMIT = 3_000;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Integer, Cover> eldest) {
        return size() > LIMIT;
    }
}

class Cover {
    final byte[] picture = new byte[2_000];
}

class LoanDesk {
    final Map<Long, Loan> loans = new HashMap<>();
}

class Loan {
    final long number;
    final String reader;

    Loan(long number, String reader) {
        this.number = number;
        this.reader = reader;
    }
}
