package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Has 10,000 sessions at any time. Each phase ends most of them and begins as many. */
class ChurnService {
    private static final int SESSIONS = 10_000;
    private static final int CHANGES = 30_000;

    private final Map<Integer, LiveSession> sessions = new HashMap<>();
    private final Random random = new Random(2);
    private long number;

    private void serve() {
        for (int i = 0; i < CHANGES; i++) {
            LiveSession session = new LiveSession("user " + ++number, new byte[random.nextInt(200)]);
            sessions.put(i < SESSIONS ? i : random.nextInt(SESSIONS), session);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ChurnService service = new ChurnService();
        for (int phase = 1; phase <= 4; phase++) {
            service.serve();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class LiveSession {
    final String user;
    final byte[] state;

    LiveSession(String user, byte[] state) {
        this.user = user;
        this.state = state;
    }
}
