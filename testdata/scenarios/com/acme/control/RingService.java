package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has a ring buffer of the last 16,000 measurements. It is full at the first dump and overwritten from then on. */
class RingService {
    private static final int MEASURED = 20_000;

    private final MeasureRing ring = new MeasureRing();

    private void work(int phase) {
        for (int i = 0; i < MEASURED; i++) {
            ring.add(new Measured(i, "sensor " + i % 300));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RingService service = new RingService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class MeasureRing {
    private final Measured[] last = new Measured[16_000];
    private long count;

    void add(Measured measured) {
        last[(int) (count++ % last.length)] = measured;
    }
}

class Measured {
    final int value;
    final String sensor;

    Measured(int value, String sensor) {
        this.value = value;
        this.sensor = sensor;
    }
}
