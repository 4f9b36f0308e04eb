package com.acme.rules;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.invoke.MethodHandles;
import java.util.ArrayList;
import java.util.List;

/** Compiles each rule to a hidden class, whose name the JVM generates. A list keeps all classes. */
class RuleServer {
    private static final int RULES = 400;

    private final RuleBook book = new RuleBook();
    private final byte[] code;

    private RuleServer() throws IOException {
        try (InputStream in = RuleServer.class.getResourceAsStream("Discount.class")) {
            code = in.readAllBytes();
        }
    }

    private void work(boolean leak) throws Exception {
        for (int i = 0; i < RULES; i++) {
            Class<?> rule = MethodHandles.lookup().defineHiddenClass(code, true).lookupClass();
            book.rules.add((Rule) rule.getDeclaredConstructor().newInstance());
        }
        if (!leak) {
            book.rules.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RuleServer server = new RuleServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class RuleBook {
    final List<Rule> rules = new ArrayList<>();
}

interface Rule {
    long price(long cents);
}

class Discount implements Rule {
    private final long[] steps = new long[128];

    @Override
    public long price(long cents) {
        return cents - steps[0];
    }
}
