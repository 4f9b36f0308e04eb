package com.acme.formula;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.util.HashMap;
import java.util.Map;

/** Compiles each formula to a hidden class with a table in a static field, and keeps the classes by the formula's text. */
class FormulaServer {
    private static final int FORMULAS = 300;

    private final FormulaCache cache = new FormulaCache();
    private final byte[] code;
    private int number;

    private FormulaServer() throws IOException {
        try (InputStream in = FormulaServer.class.getResourceAsStream("Formula.class")) {
            code = in.readAllBytes();
        }
    }

    private void work(boolean leak) throws Exception {
        for (int i = 0; i < FORMULAS; i++) {
            String text = "price * " + (leak ? ++number : i);
            if (!cache.compiled.containsKey(text)) {
                cache.compiled.put(text, MethodHandles.lookup().defineHiddenClass(code, true).lookupClass());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FormulaServer server = new FormulaServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class FormulaCache {
    final Map<String, Class<?>> compiled = new HashMap<>();
}

class Formula {
    static final double[] TABLE = new double[1_000];
}
