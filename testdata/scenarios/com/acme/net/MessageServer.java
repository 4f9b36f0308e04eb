package com.acme.net;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/**
 * Keeps the headers of received messages in a list. In leak mode, each header is a slice that keeps its whole message alive, and no
 * header is ever removed. In fixed mode, each header is a copy, and the list keeps only the last 500 headers.
 */
class MessageServer {
    private static final int MESSAGES = 500;
    private static final int HEADER = 16;

    private final HeaderTrace trace = new HeaderTrace();
    private final Map<Integer, String> routes = new HashMap<>();
    private int number;

    private MessageServer() {
        for (int i = 0; i < 15_000; i++) {
            routes.put(i, "route " + i);
        }
    }

    private void receive(boolean leak) {
        for (int i = 0; i < MESSAGES; i++) {
            ByteBuffer message = ByteBuffer.allocate(4_096).putInt(++number);
            ByteBuffer header = message.flip().limit(HEADER).slice();
            if (leak) {
                trace.headers.add(header);
            } else {
                trace.headers.add(ByteBuffer.allocate(HEADER).put(header).flip());
                if (trace.headers.size() > MESSAGES) {
                    trace.headers.remove();
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MessageServer server = new MessageServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.receive(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class HeaderTrace {
    final Deque<ByteBuffer> headers = new ArrayDeque<>();
}
