package com.acme.deploy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Deploys a module again and again, each time with a new class loader, and runs it on a pooled thread. In leak mode, the thread keeps each
 * module in a thread local, and so its class loader.
 */
class AppServer {
    private static final int DEPLOYMENTS = 120;

    private final ExecutorService workers = Executors.newFixedThreadPool(1);
    private final Map<String, String> settings = new HashMap<>();
    private final byte[] code;
    private int version;

    private AppServer() throws IOException {
        try (InputStream in = AppServer.class.getResourceAsStream("OrderModule.class")) {
            code = in.readAllBytes();
        }
        for (int i = 0; i < 15_000; i++) {
            settings.put("server.setting." + i, "value " + i);
        }
    }

    private void deploy(boolean leak) throws Exception {
        for (int i = 0; i < DEPLOYMENTS; i++) {
            ModuleLoader loader = new ModuleLoader(++version);
            Class<?> type = loader.define("com.acme.deploy.OrderModule", code);
            var constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            Object module = constructor.newInstance();
            workers.submit((Runnable) module).get();
            if (!leak) {
                AutoCloseable closeable = (AutoCloseable) module;
                workers.submit(() -> {
                    closeable.close();
                    return null;
                }).get();
            }
        }
        // Run an empty task, because otherwise the last module stays on the worker's stack.
        workers.submit(() -> {}).get();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        AppServer server = new AppServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.deploy(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        server.workers.shutdown();
    }
}

class ModuleLoader extends ClassLoader {
    final int version;

    ModuleLoader(int version) {
        super("module-" + version, ModuleLoader.class.getClassLoader());
        this.version = version;
    }

    Class<?> define(String name, byte[] code) {
        return defineClass(name, code, 0, code.length);
    }
}

class OrderModule implements Runnable, AutoCloseable {
    private static final ThreadLocal<OrderModule> CURRENT = new ThreadLocal<>();

    /** Makes a leaked module large. */
    private final byte[] buffer = new byte[8_000];

    @Override
    public void run() {
        CURRENT.set(this);
    }

    @Override
    public void close() {
        CURRENT.remove();
    }
}
