package com.acme.feeds;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;

/** Each import registers a shutdown hook that removes its temporary data. In leak mode, no hook is deregistered. */
class FeedImporter {
    private static final int IMPORTS = 1_500;

    private final Map<Integer, String> feeds = new HashMap<>();
    private int number;

    private FeedImporter() {
        for (int i = 0; i < 15_000; i++) {
            feeds.put(i, "feed " + i);
        }
    }

    private void load(boolean leak) {
        for (int i = 0; i < IMPORTS; i++) {
            CleanUp hook = new CleanUp("import " + ++number);
            Runtime.getRuntime().addShutdownHook(hook);
            if (!leak) {
                Runtime.getRuntime().removeShutdownHook(hook);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        FeedImporter importer = new FeedImporter();
        for (int phase = 1; phase <= 3; phase++) {
            importer.load(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CleanUp extends Thread {
    private final byte[] leavings = new byte[400];

    CleanUp(String name) {
        super(name);
    }

    @Override
    public void run() {
        leavings[0] = 1;
    }
}
