package com.acme.remote;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Deque;

/** Creates a proxy with its own handler for each call, and keeps the proxies in a journal. */
class RemoteServer {
    private static final int CALLS = 6_000;

    private final CallJournal journal = new CallJournal();
    private int next;

    private void work(boolean leak) {
        for (int i = 0; i < CALLS; i++) {
            InvocationHandler handler = new RetryHandler(++next);
            Object stub = Proxy.newProxyInstance(Stock.class.getClassLoader(), new Class<?>[] {Stock.class}, handler);
            journal.stubs.add((Stock) stub);
        }
        if (!leak) {
            journal.stubs.clear();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RemoteServer server = new RemoteServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class CallJournal {
    final Deque<Stock> stubs = new ArrayDeque<>();
}

interface Stock {
    int count(String article);
}

class RetryHandler implements InvocationHandler {
    final int call;
    final long[] delays = new long[12];

    RetryHandler(int call) {
        this.call = call;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        return call;
    }
}
