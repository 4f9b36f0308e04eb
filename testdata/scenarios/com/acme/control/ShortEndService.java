package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** A table is filled in two long phases. The two short phases that follow add nothing. */
class ShortEndService {
    private final List<FilledRow> rows = new ArrayList<>();

    private void work(int phase) throws InterruptedException {
        if (phase <= 2) {
            for (int i = 0; i < 10_000; i++) {
                rows.add(new FilledRow());
            }
            Thread.sleep(3_000);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ShortEndService service = new ShortEndService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class FilledRow {
    final byte[] text = new byte[48];
}
