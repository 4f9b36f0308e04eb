package com.acme.report;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Appends to a trace. In leak mode, its text is never flushed: few objects, one of which grows. */
class ReportServer {
    private final TraceLog trace = new TraceLog();
    private final Map<String, Long> totals = new HashMap<>();

    private ReportServer() {
        for (long i = 0; i < 20_000; i++) {
            totals.put("account " + i, 1_000 + i);
        }
    }

    /** Doubles the text each time, because a builder's capacity doubles. */
    private void work(int lines, boolean leak) {
        for (int i = 0; i < lines; i++) {
            trace.line("total of account " + i % 20_000 + " computed; ");
            if (!leak) {
                trace.flush();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ReportServer server = new ReportServer();
        int[] lines = {30_000, 30_000, 60_000};
        for (int phase = 1; phase <= 3; phase++) {
            server.work(lines[phase - 1], args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TraceLog {
    private final StringBuilder text = new StringBuilder(65_536);

    void line(String line) {
        text.append(line);
    }

    void flush() {
        text.setLength(0);
    }
}
