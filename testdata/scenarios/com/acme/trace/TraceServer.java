package com.acme.trace;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Each request adds a handler to the logger to collect its log lines, and does not remove the handler. */
class TraceServer {
    private static final int REQUESTS = 2_000;

    private static final Logger LOG = Logger.getLogger("com.acme.trace");

    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < REQUESTS; i++) {
            RequestHandler handler = new RequestHandler(++next);
            LOG.addHandler(handler);
            if (!leak) {
                LOG.removeHandler(handler);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        TraceServer server = new TraceServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class RequestHandler extends Handler {
    final int request;
    final char[] lines = new char[200];

    RequestHandler(int request) {
        this.request = request;
    }

    @Override
    public void publish(LogRecord line) {
        lines[0] = line.getMessage().charAt(0);
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
