package com.acme.io;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * Copies data through pooled direct buffers. In leak mode, buffers return to the pool but are never reused. On the heap, only the small
 * buffer objects grow in number.
 */
class ProxyServer {
    private static final int REQUESTS = 8_000;

    private final BufferPool pool;
    private final Map<Integer, String> routes = new HashMap<>();

    private ProxyServer(boolean leak) {
        pool = new BufferPool(leak);
        for (int i = 0; i < 20_000; i++) {
            routes.put(i, "https://host" + i + ".example.com/");
        }
    }

    private void work() {
        for (int i = 0; i < REQUESTS; i++) {
            ByteBuffer buffer = pool.acquire();
            buffer.putInt(i).putLong(routes.get(i).hashCode());
            pool.release(buffer);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ProxyServer server = new ProxyServer(args[0].equals("leak"));
        for (int phase = 1; phase <= 3; phase++) {
            server.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class BufferPool {
    private final ArrayDeque<ByteBuffer> idle = new ArrayDeque<>();
    private final boolean forgetful;

    BufferPool(boolean forgetful) {
        this.forgetful = forgetful;
    }

    ByteBuffer acquire() {
        ByteBuffer buffer = forgetful ? null : idle.pollFirst();
        return buffer == null ? ByteBuffer.allocateDirect(64) : buffer;
    }

    void release(ByteBuffer buffer) {
        buffer.clear();
        idle.addFirst(buffer);
    }
}
