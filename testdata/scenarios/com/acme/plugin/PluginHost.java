package com.acme.plugin;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Redeploys a plug-in, each time with a new class loader. In leak mode, old plug-ins stay registered. */
class PluginHost {
    private static final int DEPLOYMENTS = 150;

    private final PluginRegistry registry = new PluginRegistry();
    private final Map<String, String> settings = new HashMap<>();
    private final byte[] code;
    private int version;

    private PluginHost() throws IOException {
        try (InputStream in = PluginHost.class.getResourceAsStream("ReportPlugin.class")) {
            code = in.readAllBytes();
        }
        for (int i = 0; i < 20_000; i++) {
            settings.put("plugin.setting." + i, "value " + i);
        }
    }

    private void work(boolean leak) throws Exception {
        for (int i = 0; i < DEPLOYMENTS; i++) {
            PluginLoader loader = new PluginLoader(++version);
            Class<?> type = loader.define("com.acme.plugin.ReportPlugin", code);
            var constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            Runnable plugin = (Runnable) constructor.newInstance();
            plugin.run();
            registry.register(loader);
            if (!leak) {
                registry.unregister(loader);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PluginHost host = new PluginHost();
        for (int phase = 1; phase <= 3; phase++) {
            host.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class PluginRegistry {
    private final List<PluginLoader> loaders = new ArrayList<>();

    void register(PluginLoader loader) {
        loaders.add(loader);
    }

    void unregister(PluginLoader loader) {
        loaders.remove(loader);
    }
}

class PluginLoader extends ClassLoader {
    final int version;

    PluginLoader(int version) {
        super("plugin-" + version, PluginLoader.class.getClassLoader());
        this.version = version;
    }

    Class<?> define(String name, byte[] code) {
        return defineClass(name, code, 0, code.length);
    }
}

class ReportPlugin implements Runnable {
    /** Static data that makes a leaked class loader large. */
    static final List<byte[]> templates = new ArrayList<>();

    @Override
    public void run() {
        for (int i = 0; i < 8; i++) {
            templates.add(new byte[1_000]);
        }
    }
}
