package com.acme.meta;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Has a weak map that should drop a table together with its schema. In leak mode, the value refers to the key, so no key becomes weakly
 * reachable.
 */
class SchemaServer {
    private static final int TABLES = 9_000;

    private final Map<String, String> dictionary = new HashMap<>();

    private SchemaServer() {
        for (int i = 0; i < 20_000; i++) {
            dictionary.put("word" + i, "meaning " + i);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < TABLES; i++) {
            TableKey key = new TableKey("table_" + i);
            SchemaCache.schemas.put(key, new Schema(leak ? key : null, new String[4]));
        }
        if (!leak) {
            while (!SchemaCache.schemas.isEmpty()) {
                System.gc();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SchemaServer server = new SchemaServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SchemaCache {
    static final Map<TableKey, Schema> schemas = new WeakHashMap<>();
}

class TableKey {
    final String table;

    TableKey(String table) {
        this.table = table;
    }
}

class Schema {
    final TableKey owner;
    final String[] columns;

    Schema(TableKey owner, String[] columns) {
        this.owner = owner;
        this.columns = columns;
    }
}
