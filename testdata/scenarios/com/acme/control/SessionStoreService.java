package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/** Has 5,000 sessions with attributes at any time. Most sessions are new in each phase, and their content varies. */
class SessionStoreService {
    private static final int SESSIONS = 5_000;
    private static final int CHANGES = 12_000;

    private final Map<Integer, StoredSession> sessions = new ConcurrentHashMap<>();
    private final Random random = new Random(11);

    private void work(int phase) {
        for (int i = 0; i < CHANGES; i++) {
            StoredSession session = new StoredSession();
            session.attributes.put("user", "user " + random.nextInt());
            session.attributes.put("basket", new long[10 + random.nextInt(20)]);
            sessions.put(i < SESSIONS ? i : random.nextInt(SESSIONS), session);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SessionStoreService service = new SessionStoreService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class StoredSession {
    final Map<String, Object> attributes = new ConcurrentHashMap<>();
}
