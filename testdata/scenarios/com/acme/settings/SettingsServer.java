package com.acme.settings;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Settings fall back to the settings before the reload, which fall back to earlier ones: a chain of optionals. */
class SettingsServer {
    private static final int RELOADS = 500;

    private final SettingsStore store = new SettingsStore();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < RELOADS; i++) {
            Settings reloaded = new Settings(leak ? Optional.ofNullable(store.current) : Optional.empty());
            for (int key = 0; key < 20; key++) {
                reloaded.values.put("key." + key, "value " + ++next);
            }
            store.current = reloaded;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SettingsServer server = new SettingsServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SettingsStore {
    Settings current;
}

class Settings {
    final Optional<Settings> fallback;
    final Map<String, String> values = new HashMap<>();

    Settings(Optional<Settings> fallback) {
        this.fallback = fallback;
    }
}
