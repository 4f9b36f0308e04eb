package com.acme.portal;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps sessions with attributes and notes in the manager's map. This is one leak, although the sessions contain many maps. */
class PortalServer {
    private static final int VISITS = 3_000;

    private final SessionManager manager = new SessionManager();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < VISITS; i++) {
            PortalSession session = new PortalSession("session " + ++next);
            session.attributes.put("user", "user " + next);
            session.attributes.put("basket", new long[20]);
            session.notes.put("address", "10.0.0." + next % 250);
            manager.sessions.put(session.id, session);
        }
        if (!leak) {
            manager.sessions.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PortalServer server = new PortalServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class SessionManager {
    final Map<String, PortalSession> sessions = new ConcurrentHashMap<>();
}

class PortalSession {
    final String id;
    final Map<String, Object> attributes = new ConcurrentHashMap<>();
    final Map<String, Object> notes = new HashMap<>();

    PortalSession(String id) {
        this.id = id;
    }
}
