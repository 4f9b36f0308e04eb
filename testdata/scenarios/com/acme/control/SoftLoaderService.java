package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.SoftReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/** Holds class loaders by soft references only. Memory is ample, so no reference is cleared. */
class SoftLoaderService {
    private static final int LOADERS = 40;

    private final List<SoftReference<ScriptLoader>> loaders = new ArrayList<>();

    private void work(int phase) throws Exception {
        URL[] here = {SoftLoaderService.class.getProtectionDomain().getCodeSource().getLocation()};
        for (int i = 0; i < LOADERS; i++) {
            ScriptLoader loader = new ScriptLoader(here);
            Class.forName("com.acme.control.SoftScript", true, loader);
            loaders.add(new SoftReference<>(loader));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SoftLoaderService service = new SoftLoaderService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class ScriptLoader extends URLClassLoader {
    ScriptLoader(URL[] urls) {
        super(urls, ClassLoader.getPlatformClassLoader());
    }
}

class SoftScript {
    static final byte[] SOURCE = new byte[20_000];
}
