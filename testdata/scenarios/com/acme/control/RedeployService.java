package com.acme.control;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Deploys ten modules again in each phase, with new class loaders. The old loaders become unreachable. */
class RedeployService {
    private static final int MODULES = 10;

    private final Map<String, Runnable> modules = new HashMap<>();
    private final byte[] code;

    private RedeployService() throws IOException {
        try (InputStream in = RedeployService.class.getResourceAsStream("DeployedModule.class")) {
            code = in.readAllBytes();
        }
    }

    private void work(int phase) throws Exception {
        for (int i = 0; i < MODULES; i++) {
            var constructor = new DeployLoader().define(code).getDeclaredConstructor();
            constructor.setAccessible(true);
            modules.put("module " + i, (Runnable) constructor.newInstance());
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RedeployService service = new RedeployService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class DeployLoader extends ClassLoader {
    DeployLoader() {
        super(DeployLoader.class.getClassLoader());
    }

    Class<?> define(byte[] code) {
        return defineClass("com.acme.control.DeployedModule", code, 0, code.length);
    }
}

class DeployedModule implements Runnable {
    static final long[] state = new long[10_000];

    @Override
    public void run() {
        state[0]++;
    }
}
