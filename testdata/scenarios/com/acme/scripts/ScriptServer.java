package com.acme.scripts;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Compiles every script again, with its own class loader: 250 loaders of one class in each phase. */
class ScriptServer {
    private static final int SCRIPTS = 250;

    private final ScriptCache cache = new ScriptCache();
    private final byte[] code;
    private int next;

    private ScriptServer() throws IOException {
        try (InputStream in = ScriptServer.class.getResourceAsStream("TotalScript.class")) {
            code = in.readAllBytes();
        }
    }

    private void work(boolean leak) throws Exception {
        for (int i = 0; i < SCRIPTS; i++) {
            Class<?> type = new ScriptLoader().define(code);
            var constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            cache.compiled.put("script " + ++next, (Runnable) constructor.newInstance());
        }
        if (!leak) {
            cache.compiled.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ScriptServer server = new ScriptServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ScriptCache {
    final Map<String, Runnable> compiled = new HashMap<>();
}

class ScriptLoader extends ClassLoader {
    ScriptLoader() {
        super(ScriptLoader.class.getClassLoader());
    }

    Class<?> define(byte[] code) {
        return defineClass("com.acme.scripts.TotalScript", code, 0, code.length);
    }
}

class TotalScript implements Runnable {
    static final long[] totals = new long[500];

    @Override
    public void run() {
        totals[0]++;
    }
}
