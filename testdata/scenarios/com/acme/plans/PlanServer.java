package com.acme.plans;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup.ClassOption;

/** Compiles a hidden class for each query. The lookup option STRONG keeps each class as long as its class loader. */
class PlanServer {
    private static final int QUERIES = 300;

    private final byte[] code;

    private PlanServer() throws IOException {
        try (InputStream in = PlanServer.class.getResourceAsStream("Plan.class")) {
            code = in.readAllBytes();
        }
    }

    private void work(boolean leak) throws Exception {
        for (int i = 0; i < QUERIES; i++) {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            if (leak) {
                lookup.defineHiddenClass(code, true, ClassOption.STRONG);
            } else {
                lookup.defineHiddenClass(code, true);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PlanServer server = new PlanServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Plan {
    static final double[] TABLE = new double[1_000];
}
