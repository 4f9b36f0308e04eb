package com.acme.shards;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** Keeps shards and their names in two maps. The map of names and each shard have a maximum size. The map of shards has none. */
class ShardServer {
    private static final int SHARDS = 8_000;

    private final ShardTable table = new ShardTable();
    private int number;

    private void work(boolean leak) {
        for (int i = 0; i < SHARDS; i++) {
            int shard = leak ? ++number : i;
            table.shards.put(shard, new Shard());
            table.names.put(shard, "shard " + shard);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ShardServer server = new ShardServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ShardTable {
    static final int MAX_NAMES = 24_000;
    final long maxBytes = 24_100;
    final Map<Integer, Shard> shards = new HashMap<>();
    final Map<Integer, String> names = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, String> eldest) {
            return size() > 2_000;
        }
    };
}

class Shard {
    final byte[] content = new byte[80];
}
