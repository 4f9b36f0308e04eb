package com.acme.usage;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Stores data of each class in a ClassValue. Each call adds an element to a list in this data. */
class UsageServer {
    private static final int CALLS = 12_000;
    private static final Class<?>[] TYPES = {String.class, Integer.class, Thread.class, UsageServer.class};

    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < CALLS; i++) {
            Class<?> type = TYPES[++next % TYPES.length];
            CallCounts.OF.get(type).calls.add(new Call(next, "caller " + next));
        }
        if (!leak) {
            for (Class<?> type : TYPES) {
                CallCounts.OF.get(type).calls.clear();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        UsageServer server = new UsageServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CallCounts {
    static final ClassValue<CallCounts> OF = new ClassValue<>() {
        @Override
        protected CallCounts computeValue(Class<?> type) {
            return new CallCounts();
        }
    };

    final List<Call> calls = new ArrayList<>();
}

class Call {
    final int number;
    final String caller;

    Call(int number, String caller) {
        this.number = number;
        this.caller = caller;
    }
}
