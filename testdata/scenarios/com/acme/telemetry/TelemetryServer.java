package com.acme.telemetry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps readings by region, device and time, in maps of three kinds. In leak mode, old readings stay. */
class TelemetryServer {
    private static final int READINGS = 12_000;
    private static final int REGIONS = 8;
    private static final int DEVICES = 40;

    static final TelemetryStore store = new TelemetryStore();

    private final Random random = new Random(5);
    private final Map<Integer, String> firmware = new HashMap<>();
    private long time;

    private TelemetryServer() {
        for (int i = 0; i < 15_000; i++) {
            firmware.put(i, "firmware " + i);
        }
    }

    private void collect(boolean leak) {
        for (int i = 0; i < READINGS; i++) {
            String region = "region-" + random.nextInt(REGIONS);
            int device = random.nextInt(DEVICES);
            Reading reading = new Reading(++time, random.nextDouble());
            store.put(region, device, reading);
            if (!leak) {
                store.remove(region, device, reading);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TelemetryServer server = new TelemetryServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.collect(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class TelemetryStore {
    private final Map<String, Map<Integer, Map<Long, Reading>>> byRegion = new ConcurrentHashMap<>();

    private Map<Long, Reading> of(String region, int device) {
        return byRegion
                .computeIfAbsent(region, r -> new HashMap<>())
                .computeIfAbsent(device, d -> new TreeMap<>());
    }

    void put(String region, int device, Reading reading) {
        of(region, device).put(reading.time, reading);
    }

    void remove(String region, int device, Reading reading) {
        of(region, device).remove(reading.time);
    }
}

class Reading {
    final long time;
    final double value;

    Reading(long time, double value) {
        this.time = time;
        this.value = value;
    }
}
