package com.acme.vault;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/** Has a cache with soft values. Keys, entries and references stay after values are cleared, because there is no reference queue. */
class VaultServer {
    private static final int DOCUMENTS = 12_000;

    private final Vault vault = new Vault();
    private long number;

    private void work(boolean leak) {
        for (int i = 0; i < DOCUMENTS; i++) {
            String key = "document " + (leak ? ++number : i);
            vault.documents.put(key, new SoftReference<>(new byte[16]));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        VaultServer server = new VaultServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Vault {
    final Map<String, SoftReference<byte[]>> documents = new HashMap<>();
}
