package com.acme.trades;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.eclipse.collections.impl.list.mutable.FastList;

/** Keeps trades in a list class of a collections library. */
class TradeServer {
    private static final int TRADES = 9_000;

    private final TradeBook book = new TradeBook();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < TRADES; i++) {
            book.trades.add(new Trade(++next, "trader " + next % 90));
        }
        if (!leak) {
            book.trades.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TradeServer server = new TradeServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TradeBook {
    final FastList<Trade> trades = FastList.newList();
}

class Trade {
    final int number;
    final String trader;

    Trade(int number, String trader) {
        this.number = number;
        this.trader = trader;
    }
}
