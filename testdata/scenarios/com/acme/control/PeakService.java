package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** A report at the end of a month needs 30,000 lines for a while, in the second phase only. */
class PeakService {
    private static final int[] LINES = {3_000, 30_000, 3_000, 3_000};

    private final List<ReportLine> lines = new ArrayList<>();

    private void work(int phase) {
        lines.clear();
        for (int i = 0; i < LINES[phase - 1]; i++) {
            lines.add(new ReportLine("line " + i));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PeakService service = new PeakService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ReportLine {
    final String text;

    ReportLine(String text) {
        this.text = text;
    }
}
