package com.acme.preview;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Keeps the first rows of each report for a preview. In leak mode, these rows are a view of all rows, and the previews of closed reports
 * stay.
 */
class ReportServer {
    private static final int REPORTS = 120;
    private static final int ROWS = 300;
    private static final int PREVIEW = 5;

    private final PreviewCache cache = new PreviewCache();
    private final Map<Integer, String> titles = new HashMap<>();
    private final Random random = new Random(8);
    private int number;

    private ReportServer() {
        for (int i = 0; i < 15_000; i++) {
            titles.put(i, "report " + i);
        }
    }

    private void report(boolean leak) {
        for (int i = 0; i < REPORTS; i++) {
            List<Row> rows = new ArrayList<>();
            for (int n = 0; n < ROWS; n++) {
                rows.add(new Row(n, random.nextInt(100_000)));
            }
            List<Row> preview = rows.subList(0, PREVIEW);
            if (leak) {
                cache.previews.put(++number, preview);
            } else {
                cache.previews.put(i, new ArrayList<>(preview));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ReportServer server = new ReportServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.report(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PreviewCache {
    final Map<Integer, List<Row>> previews = new HashMap<>();
}

class Row {
    final int number;
    final long cents;

    Row(int number, long cents) {
        this.number = number;
        this.cents = cents;
    }
}
